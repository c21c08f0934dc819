/* SPDX-License-Identifier: Apache-2.0 */
/* Checks steps before anything runs: the word, the keys of the argument, the syntax of
 * expressions. */
#include "core/nri-rp-sim/forms.h"

#include "core/nri-rp-sim/expect.h"
#include "core/nri-rp-sim/steps.h"
#include "core/nri-rp-sim/model.h"
#include "core/lib/util/str.h"

#define WITH_ERROR true

static int forms_each(const json_t *args, int (*fn)(const json_t *arg, bool error, struct err *err),
		      bool error, struct err *err)
{
	json_t *item;
	size_t i;
	int r = 0;
	if (!json_is_array(args))
		return fn(args, error, err);
	json_array_foreach(args, i, item)
	{
		if (!r)
			r = fn(item, error, err);
	}
	return r;
}

static int forms_pod(const json_t *arg, bool error, struct err *err)
{
	return model_check_pod(arg, error ? "error" : "", err);
}

static int forms_resize(const json_t *arg, bool error, struct err *err)
{
	return arg_check(arg,
			 error ? "container pod cpu memory requests limits error"
			       : "container cpu memory requests limits",
			 "update", err);
}

static int forms_expression(const json_t *arg, bool error, struct err *err)
{
	const char *text = json_string_value(arg);
	(void)error;
	return text ? expect_check(text, err) : err_set(err, -EINVAL, "expected an expression");
}

static int log_line(const json_t *arg, bool error, struct err *err)
{
	(void)error;
	return json_is_object(arg) ? arg_check(arg, "regex within never", "log", err) : 0;
}

static int forms_event(const json_t *arg, bool error, struct err *err)
{
	(void)error;
	return arg_check(arg, "event container", "tell", err);
}

static int forms_control(const json_t *arg, bool error, struct err *err)
{
	(void)error;
	return arg_check(arg, "method args has lacks", "control", err);
}

static const struct form {
	const char *name;
	int (*check)(const json_t *arg, bool error, struct err *err);
	bool error; /* the step accepts an expected error text */
} forms[] = {
	{"create", forms_pod, false},
	{"existing", forms_pod, false},
	{"reject", forms_pod, WITH_ERROR},
	{"update", forms_resize, false},
	{"reject-update", forms_resize, WITH_ERROR},
	{"expect", forms_expression, false},
	{"log", log_line, false},
	{"tell", forms_event, false},
	{"control", forms_control, false},
};

int step_check(const json_t *step, struct err *err)
{
	const char *name = step_name(step);
	if (!name)
		return err_set(err, -EINVAL, "a step is one word with its argument");
	int r = step_known(name, err);
	for (unsigned i = 0; !r && i < sizeof forms / sizeof *forms; i++)
		if (str_eq(forms[i].name, name))
			r = forms_each(json_object_get(step, name), forms[i].check, forms[i].error,
				       err);
	return r ? err_prefix(err, "%s: ", name) : 0;
}
