/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rp-agent/configs_internal.h"
#include "proto/agent.pb-c.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "configs"
#define CERTAIN_MS 60000u /* time without an object after which its absence is considered certain */
#define DISCOVER_AGAIN_MS (5u * 60000u)
#define ANSWER_ARENA (4u << 20)
#define RETIRE_POLL_MS 50u
#define RETIRE_MAX_MS 10000u

void configs_settle_later(struct configs *c, uint32_t ms)
{
	if (!loop_timer_armed(c->settle_timer) || !ms)
		(void)loop_timer_arm(c->settle_timer, ms);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static struct kind *find_kind(const struct configs *c, const char *plural, unsigned ns)
{
	for (unsigned i = 0; i < c->n_kinds; i++)
		if (c->kinds[i]->ns == ns && str_eq(c->kinds[i]->plural, plural))
			return c->kinds[i];
	return NULL;
}

static int add_kind(struct configs *c, const char *plural, unsigned ns, bool config_map)
{
	if (find_kind(c, plural, ns) || c->n_kinds > KINDS_MAX || strlen(plural) >= PLURAL_MAX ||
	    plural[strspn(plural, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		return 0;
	struct kind *k = calloc(1, sizeof *k);
	if (!k)
		return -ENOMEM;
	k->configs = c;
	k->ns = ns;
	k->config_map = config_map;
	(void)snprintf(k->plural, sizeof k->plural, "%s", plural);
	for (unsigned i = 0; i < N_LEVELS; i++)
		k->slots[i].level = i;
	c->kinds[c->n_kinds++] = k;
	int r = slot_open(k, LEVEL_NODE);
	if (!r && c->group_known)
		r = slot_open(k, LEVEL_SELECTED);
	return r || !c->group_known ? r : slot_open(k, LEVEL_SHARED);
}

static void kind_free(struct kind *k)
{
	for (struct slot *s = kind_next(k, NULL), *next; s; s = next) {
		next = kind_next(k, s);
		slot_close(s);
		verdicts_free(s->passed);
		if (s != &k->slots[s->level])
			free(s);
	}
	free(k);
}

static bool configs_is_listed(const json_t *resources, const char *plural)
{
	const json_t *resource;
	size_t i;
	json_array_foreach(resources, i, resource)
	{
		const char *name = json_string_value(json_object_get(resource, "name"));
		if (name && str_eq(name, plural))
			return true;
	}
	return false;
}

/* Forgets kinds whose definition was removed from the cluster, and their problems. */
static void configs_forget_kinds(struct configs *c, const json_t *resources)
{
	unsigned n = 1;
	for (unsigned i = 1; i < c->n_kinds; i++) {
		bool held = false;
		const struct slot *s = c->kinds[i]->slots;
		do
			held = held || s->held;
		while ((s = kind_next(c->kinds[i], s)));
		/* a server that starts may not list all kinds yet */
		if (held || configs_is_listed(resources, c->kinds[i]->plural))
			c->kinds[n++] = c->kinds[i];
		else
			kind_free(c->kinds[i]);
	}
	c->n_kinds = n;
}

/* Handles the list of kinds in the group config.nri. A removed kind is treated as a kind without
 * objects. */
static void configs_discovered(const struct kube_answer *answer, void *arg)
{
	struct configs *c = arg;
	json_t *list = json_object_get(answer->body, "resources"), *resource;
	bool answered = !answer->error || answer->error == -ENOENT || answer->error == -EACCES;
	size_t i;
	c->discovery = NULL;
	if (answer->error && !c->discovered && answered)
		log_notice("no custom resources configure this node: %s", answer->text);
	json_array_foreach(list, i, resource)
	{
		const char *plural = json_string_value(json_object_get(resource, "name"));
		for (unsigned ns = 0; plural && !strchr(plural, '/') && ns < c->n_ns; ns++)
			if (add_kind(c, plural, ns, false))
				log_error("%s: out of memory", plural);
	}
	c->discovered |= answered;
	c->discovery_denied = answer->error == -EACCES;
	if (!answer->error)
		configs_forget_kinds(c, list);
	configs_settle_later(c, SETTLE_MS);
	(void)loop_timer_arm(c->discover_timer,
			     answered ? DISCOVER_AGAIN_MS : kube_backoff_next_ms(&c->backoff));
}

void configs_discover(void *arg)
{
	struct configs *c = arg;
	const struct kube_request request = {
		.method = "GET", .path = GROUP_PATH, .done = configs_discovered, .arg = c};
	if (!c->discovery)
		c->discovery = kube_call(c->config.kube, &request);
	if (!c->discovery)
		(void)loop_timer_arm(c->discover_timer, kube_backoff_next_ms(&c->backoff));
}

/* ---- configuration for the daemon ------------------------------------------------------------ */

static void configs_tell(struct configs *c, const struct slot *s, const char *errors,
			 const char *warnings)
{
	verdicts_tell(c->verdicts, s->kind->plural, s->held, errors, warnings);
	if (errors)
		log_warning("%s %s/%s is refused: %s", s->held->kind, s->held->ns, s->held->name,
			    errors);
	else
		log_notice("%s %s/%s, generation %s, is active", s->held->kind, s->held->ns,
			   s->held->name, s->held->generation);
}

static void try_again(struct configs *c)
{
	c->sent_counts = false;
	(void)loop_timer_arm(c->settle_timer, kube_backoff_next_ms(&c->backoff));
}

static void configs_answered(const struct rpc_result *result, void *arg)
{
	struct configs *c = arg;
	const struct slot *s = c->sending;
	bool stale = c->stale;
	c->sending = NULL;
	c->stale = false;
	if (result->error == -ECANCELED)
		return;
	_arena_ struct arena *a = arena_new(4096, ANSWER_ARENA);
	const Agent__SetConfigResponse *m = RPC_ANSWER(a, agent__set_config_response, result);
	bool refused = result->error == -EREMOTEIO && result->code == TTRPC_FAILED_PRECONDITION;
	if ((!m && !refused) || stale) {
		if (result->error != -ECONNRESET && !stale)
			log_warning("nri-rpd did not accept the configuration: %s", result->text);
		try_again(c);
		return;
	}
	kube_backoff_reset(&c->backoff);
	/* An object that has changed in the meantime is sent next, and reported then. */
	if (s && candidate_same(s->held, c->sent))
		configs_tell(c, s,
			     refused	   ? result->text
			     : m->accepted ? NULL
			     : *m->errors  ? m->errors
					   : "refused without a reason",
			     m && *m->warnings ? m->warnings : NULL);
	configs_settle_later(c, SETTLE_MS);
}

/* Returns a copy without texts, for later comparisons. */
static struct candidate *configs_identity(const struct candidate *of)
{
	struct candidate *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->uid = strdup(of->uid);
	c->generation = strdup(of->generation);
	return c->uid && c->generation ? c : candidate_free(c);
}

static int send_sections(struct configs *c, const struct slot *s)
{
	const struct candidate *from = s->held;
	Agent__SetConfigRequest msg = AGENT__SET_CONFIG_REQUEST__INIT;
	Agent__Section sections[AGENT_SECTIONS_MAX], *list[AGENT_SECTIONS_MAX];
	for (size_t i = 0; i < from->n_sections; i++) {
		agent__section__init(&sections[i]);
		sections[i].name = from->sections[i].name;
		sections[i].text = from->sections[i].text;
		sections[i].keyed = from->sections[i].keyed;
		list[i] = &sections[i];
	}
	msg.kind = from->kind;
	msg.namespace_ = from->ns;
	msg.name = from->name;
	msg.uid = from->uid;
	msg.generation = from->generation;
	msg.sections = list;
	msg.n_sections = from->n_sections;
	return link_call(c->config.link, "SetConfig", &msg.base, AGENT_CONFIG_TIMEOUT_MS,
			 configs_answered, c);
}

static void configs_send(struct configs *c, const struct slot *s)
{
	candidate_free(c->sent);
	c->sent = configs_identity(s->held);
	c->sent_counts = true;
	if (s->held->refused) {
		configs_tell(c, s, s->held->refused, NULL);
		return;
	}
	int r = c->sent ? send_sections(c, s) : -ENOMEM;
	c->sent_counts = !r;
	if (!r)
		c->sending = s;
	else if (r != -ENOTCONN) /* configs_daemon_connected() will send it */
		try_again(c);
}

/* ---- no configuration ------------------------------------------------------------------------ */

static void configs_clear_answered(const struct rpc_result *result, void *arg)
{
	struct configs *c = arg;
	if (result->error == -ECANCELED)
		return;
	if (result->error) {
		c->cleared = false;
		if (result->error != -EREMOTEIO || result->code != TTRPC_FAILED_PRECONDITION)
			(void)loop_timer_arm(c->settle_timer, kube_backoff_next_ms(&c->backoff));
		return;
	}
	kube_backoff_reset(&c->backoff);
}

/* Tells the daemon that the cluster has no configuration for this node, so that it returns to its
 * files. */
static void configs_clear(struct configs *c)
{
	Agent__SetConfigRequest msg = AGENT__SET_CONFIG_REQUEST__INIT;
	char none[] = "none", generation[] = "0";
	msg.kind = msg.name = msg.uid = none;
	msg.namespace_ = c->ns[0];
	msg.generation = generation;
	c->sent = candidate_free(c->sent);
	c->sent_counts = false;
	int r = link_call(c->config.link, "SetConfig", &msg.base, AGENT_CONFIG_TIMEOUT_MS,
			  configs_clear_answered, c);
	c->cleared = !r;
	if (r && r != -ENOTCONN)
		(void)loop_timer_arm(c->settle_timer, kube_backoff_next_ms(&c->backoff));
}

/* Returns true if the absence of objects means that there are none: one was seen to be deleted, or
 * none has appeared for a minute. A server that starts does not know all kinds at once. */
static bool configs_is_certain(struct configs *c)
{
	const uint64_t now = clock_ms();
	if (c->deleted)
		return true;
	if (!c->none_since_ms)
		c->none_since_ms = now;
	const uint64_t passed = now - c->none_since_ms;
	if (passed >= CERTAIN_MS)
		return true;
	/* not settle_timer: an object that appears meanwhile is used at once */
	(void)loop_timer_arm(c->certain_timer, CERTAIN_MS - passed);
	return false;
}

/* Returns true if all kinds are readable, so that no object can be overlooked. */
static bool configs_all_readable(const struct configs *c)
{
	for (unsigned i = 0; i < c->n_kinds; i++)
		for (unsigned l = 0; l < N_LEVELS; l++)
			if (c->kinds[i]->slots[l].denied)
				return false;
	return !c->discovery_denied;
}

/* ---- choice of the configuration ------------------------------------------------------------- */

static bool level_known(const struct configs *c, enum level level)
{
	for (unsigned i = 0; i < c->n_kinds; i++)
		if (!c->kinds[i]->slots[level].known)
			return false;
	return c->discovered;
}

/* Reasons for which an object of the same level precedes another. */
static const char *const precedence[] = {"whose namespace comes first", "whose name sorts first",
					 "which was created later"};

/* Compares two slots of one level. Returns true if a precedes b, and the reason that decides. */
static bool slot_precedes(const struct slot *a, const struct slot *b, const char **why)
{
	const int names = a->level == LEVEL_SELECTED ? strcmp(a->name, b->name) : 0;
	const bool elsewhere = a->kind->ns != b->kind->ns;
	*why = precedence[elsewhere ? 0 : names ? 1 : 2];
	return elsewhere ? a->kind->ns < b->kind->ns
	       : names	 ? names < 0
			 : candidate_better(a->held, b->held) == a->held;
}

static const struct slot *configs_best(const struct configs *c, enum level level)
{
	const struct slot *found = NULL;
	const char *why;
	for (unsigned i = 0; i < c->n_kinds; i++)
		for (const struct slot *s = &c->kinds[i]->slots[level]; s; s = s->next)
			if (slot_usable(s) && (!found || slot_precedes(s, found, &why)))
				found = s;
	return found;
}

/* Writes into the status of an object that another one precedes which. */
static void configs_pass(const struct configs *c, struct slot *s, const struct slot *by)
{
	const char *reason;
	(void)slot_precedes(by, s, &reason);
	char *why = str_printf("not used: %s %s/%s, %s, configures this node", by->held->kind,
			       by->held->ns, by->held->name, reason);
	const bool same = why && s->passed_why && str_eq(why, s->passed_why) &&
			  candidate_same(s->passed_for, s->held);
	free(s->passed_why);
	s->passed_why = why;
	if (same)
		return;
	if (!s->passed)
		s->passed = verdicts_new(c->config.kube, c->node);
	candidate_free(s->passed_for);
	s->passed_for = configs_identity(s->held);
	verdicts_release(c->verdicts, s->kind->plural, s->held);
	if (why && s->passed && s->passed_for)
		verdicts_tell(s->passed, s->kind->plural, s->held, why, NULL);
}

/* Follows a choice in the statuses of custom resources that would configure this node without the
 * chosen object. */
static void configs_pass_others(const struct configs *c, const struct slot *chosen)
{
	for (unsigned i = 1; i < c->n_kinds; i++)
		for (struct slot *s = NULL; (s = kind_next(c->kinds[i], s));)
			if (s == chosen)
				slot_use(s);
			else if (slot_usable(s) && s->level == chosen->level)
				configs_pass(c, s, chosen);
			else
				slot_unpass(s);
}

static void configs_choose(struct configs *c)
{
	const struct slot *s = NULL;
	for (unsigned level = 0; !s && level < N_LEVELS; level++) {
		if ((level && !c->group_known) || !level_known(c, level))
			return;
		s = configs_best(c, level);
	}
	if (!s && !c->warned_none)
		log_warning("the cluster has no configuration for node %s in namespace %s: %s",
			    c->node, c->ns[0],
			    configs_all_readable(c) ? "using the node's files (a minute from now, "
						      "unless a configuration was deleted)"
						    : "keeping the active configuration, because "
						      "not all kinds can be read");
	c->warned_none = !s;
	if (s) {
		c->cleared = c->deleted = false;
		c->none_since_ms = 0;
	} else if (!c->cleared && configs_all_readable(c) && configs_is_certain(c)) {
		verdicts_withdraw(c->verdicts);
		configs_clear(c);
	}
	if (s && !(c->sent_counts && candidate_same(s->held, c->sent)))
		configs_send(c, s);
	if (s)
		configs_pass_others(c, s);
}

/* Watches the objects that concern the node with its present labels and group. */
static void change_labels(struct configs *c)
{
	for (unsigned i = 0; i < c->n_kinds; i++)
		if ((c->group_changed && slot_open(c->kinds[i], LEVEL_SHARED)) ||
		    (c->labels_changed && slot_open(c->kinds[i], LEVEL_SELECTED)))
			log_error("%s: out of memory", c->kinds[i]->plural);
	c->group_changed = c->labels_changed = false;
}

/* Reports kinds with too many objects for this node. */
static void configs_tell_full(const struct configs *c)
{
	_free_ char *text = NULL;
	for (unsigned i = 0; !text && i < c->n_kinds; i++)
		if (c->kinds[i]->slots[LEVEL_SELECTED].full)
			text = str_printf("%s: more than %u objects select node %s by their "
					  "nodeSelector, further ones are ignored: delete some, or "
					  "add labels to their nodeSelector",
					  c->kinds[i]->plural, SELECTED_MAX, c->node);
	kube_set_problem(c->config.kube, "nodeSelector", text);
}

static void configs_settle(void *arg)
{
	struct configs *c = arg;
	if (c->sending || c->retired)
		return; /* the pending answer calls this function again */
	if (c->group_changed || c->labels_changed)
		change_labels(c);
	configs_tell_full(c);
	configs_choose(c);
}

/* Closes the kinds of all namespaces but the first. Their objects are treated as deleted. */
static void configs_close_others(struct configs *c)
{
	unsigned n = 0;
	for (unsigned i = 0; i < c->n_kinds; i++)
		if (c->kinds[i]->ns) {
			for (const struct slot *s = NULL; (s = kind_next(c->kinds[i], s));)
				c->deleted |= slot_usable(s) != NULL;
			kind_free(c->kinds[i]);
		} else {
			c->kinds[n++] = c->kinds[i];
		}
	c->n_kinds = n;
	for (; c->n_ns > 1; c->n_ns--)
		free(c->ns[c->n_ns - 1]);
}

void configs_set_namespaces(struct configs *c, char *const *list, size_t n)
{
	bool same = true;
	unsigned at = 1;
	for (size_t i = 0; i < n; i++)
		if (!str_eq(list[i], c->ns[0]))
			same &= at < c->n_ns && str_eq(list[i], c->ns[at++]);
	if (same && at == c->n_ns)
		return;
	configs_close_others(c);
	for (size_t i = 0; i < n && c->n_ns <= AGENT_NAMESPACES_MAX; i++) {
		char *ns = str_eq(list[i], c->ns[0]) ? NULL : strdup(list[i]);
		if (ns)
			c->ns[c->n_ns++] = ns;
	}
	for (unsigned i = 1, kinds = c->n_kinds; i < kinds; i++)
		for (unsigned ns = 1; ns < c->n_ns; ns++)
			if (add_kind(c, c->kinds[i]->plural, ns, false))
				log_error("%s: out of memory", c->kinds[i]->plural);
}

void configs_set_group(struct configs *c, const char *group)
{
	bool same = c->group && group ? str_eq(c->group, group) : !c->group && !group;
	if (c->group_known && same)
		return;
	if (group)
		log_info("this node belongs to the group %s", group);
	free(c->group);
	c->group = group ? strdup(group) : NULL;
	c->labels_changed |= !c->group_known;
	c->group_known = c->group_changed = true;
	configs_settle_later(c, 0);
}

void configs_node_seen(struct configs *c, const json_t *node)
{
	json_t *labels = kube_meta(node, "labels");
	verdicts_node_seen(c->verdicts, node);
	if (json_equal(labels, c->labels) || (!labels && !c->labels))
		return;
	json_decref(c->labels);
	c->labels = json_incref(labels);
	c->labels_changed = true;
	configs_settle_later(c, SETTLE_MS);
}

void configs_daemon_connected(struct configs *c)
{
	c->sent_counts = c->cleared = false;
	c->stale = c->sending != NULL;
	configs_settle_later(c, 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool configs_idle(const struct configs *c)
{
	bool idle = verdicts_idle(c->verdicts);
	for (unsigned i = 0; i < c->n_kinds; i++)
		for (const struct slot *s = NULL; (s = kind_next(c->kinds[i], s));)
			idle &= !s->passed || verdicts_idle(s->passed);
	return idle;
}

static void configs_do_retire(void *arg)
{
	struct configs *c = arg;
	if (configs_idle(c) || clock_ms() >= c->retire_until_ms)
		c->retired(c->retired_arg);
	else
		(void)loop_timer_arm(c->retire_timer, RETIRE_POLL_MS);
}

void configs_retire(struct configs *c, void (*done)(void *arg), void *arg)
{
	c->retired = done;
	c->retired_arg = arg;
	c->retire_until_ms = clock_ms() + RETIRE_MAX_MS;
	verdicts_withdraw(c->verdicts);
	for (unsigned i = 0; i < c->n_kinds; i++)
		for (struct slot *s = NULL; (s = kind_next(c->kinds[i], s));)
			slot_unpass(s);
	configs_do_retire(c);
}

int configs_new(const struct configs_config *config, struct configs **ret, struct err *err)
{
	struct configs *c = calloc(1, sizeof *c);
	if (!c)
		return err_errno(err, -ENOMEM, "configurations of the cluster");
	struct loop *loop = kube_loop(config->kube);
	c->config = *config;
	c->node = strdup(config->node);
	c->ns[0] = strdup(config->ns);
	c->n_ns = 1;
	c->config_map = strdup(config->config_map);
	c->verdicts = verdicts_new(config->kube, config->node);
	c->discover_timer = loop_timer_new(loop, configs_discover, c);
	c->settle_timer = loop_timer_new(loop, configs_settle, c);
	c->certain_timer = loop_timer_new(loop, configs_settle, c);
	c->retire_timer = loop_timer_new(loop, configs_do_retire, c);
	if (!c->node || !c->ns[0] || !c->config_map || !c->verdicts || !c->discover_timer ||
	    !c->settle_timer || !c->certain_timer || !c->retire_timer ||
	    add_kind(c, "configmaps", 0, true)) {
		configs_free(c);
		return err_errno(err, -ENOMEM, "configurations of the cluster");
	}
	configs_discover(c);
	*ret = c;
	return 0;
}

struct configs *configs_free(struct configs *c)
{
	if (!c)
		return NULL;
	for (unsigned i = 0; i < c->n_kinds; i++)
		kind_free(c->kinds[i]);
	kube_cancel(c->discovery);
	loop_timer_free(c->discover_timer);
	loop_timer_free(c->settle_timer);
	loop_timer_free(c->certain_timer);
	loop_timer_free(c->retire_timer);
	verdicts_free(c->verdicts);
	candidate_free(c->sent);
	json_decref(c->labels);
	free(c->group);
	free(c->node);
	for (unsigned i = 0; i < c->n_ns; i++)
		free(c->ns[i]);
	free(c->config_map);
	free(c);
	return NULL;
}
