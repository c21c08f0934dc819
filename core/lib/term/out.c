/* SPDX-License-Identifier: Apache-2.0 */
/* Writes text, with control sequences removed and lines wrapped. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/lib/term/out.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define WIDTH_DEFAULT 80u
#define WIDTH_MIN 40u
#define WIDTH_MAX 4096u
#define FIELD_WIDTH 14u
/* indentation of lines whose column is in the last quarter of the width */
#define WRAP_INDENT_LEAST 4u

static unsigned width_of(int fd)
{
	struct winsize ws;
	uint64_t columns;
	const char *env = getenv("COLUMNS");
	if (env && str_to_u64(env, &columns) == 0 && columns >= WIDTH_MIN && columns <= WIDTH_MAX)
		return (unsigned)columns;
	if (ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col)
		return ws.ws_col < WIDTH_MIN ? WIDTH_MIN : ws.ws_col;
	return WIDTH_DEFAULT;
}

void term_init(struct term *t, int fd)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool tty = isatty(fd) == 1;
	(void)setlocale(LC_CTYPE, "");
	t->utf8 = str_eq(nl_langinfo(CODESET), "UTF-8");
	t->colour = tty && !(no_color && *no_color) && term && !str_eq(term, "dumb");
	t->width = tty ? width_of(fd) : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Returns true for characters that change how others are shown: C1 controls, marks and overrides of
 * direction, the line separators. */
static bool is_control(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;
	if (n == 1)
		return u[0] < 0x20 || u[0] == 0x7f;
	if (n == 2)
		return u[0] == 0xc2 && u[1] < 0xa0;
	if (n != 3 || u[0] != 0xe2)
		return false;
	return (u[1] == 0x80 && (u[2] == 0x8e || u[2] == 0x8f || (u[2] >= 0xa8 && u[2] <= 0xae))) ||
	       (u[1] == 0x81 && u[2] >= 0xa0 && u[2] <= 0xaf);
}

static const char *plain_form(const char *s, size_t n)
{
	static const struct {
		const char *utf8, *ascii;
	} forms[] = {{"→", "->"}, {"…", "..."}, {"–", "-"},  {"—", "-"}, {"·", "."}, {"│", "|"},
		     {"─", "-"},  {"≥", ">="},	{"≤", "<="}, {"×", "x"}, {"•", "*"}, {"✓", "+"},
		     {"✗", "x"},  {"┌", "+"},	{"└", "+"},  {"├", "+"}, {"µ", "u"}};
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
		if (strlen(forms[i].utf8) == n && memcmp(forms[i].utf8, s, n) == 0)
			return forms[i].ascii;
	return "?";
}

static void add_clean(struct buf *out, const struct term *term, const char *s, bool lines)
{
	size_t left = strlen(s);
	while (left) {
		size_t n = utf8_char(s, left);
		bool kept = lines && (*s == '\n' || *s == '\t');
		if (!n || (is_control(s, n) && !kept))
			(void)buf_add_str(out, "?");
		else if (n > 1 && !term->utf8)
			(void)buf_add_str(out, plain_form(s, n));
		else
			(void)buf_add(out, s, n);
		s += n ? n : 1;
		left -= n ? n : 1;
	}
}

char *text_clean(const struct term *term, const char *s)
{
	struct buf b = BUF_INIT;
	add_clean(&b, term, s, false);
	char *copy = b.failed ? NULL : strdup(buf_text(&b));
	buf_fini(&b);
	return copy;
}

unsigned text_width(const char *s)
{
	unsigned n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

unsigned text_cut(const char *s, unsigned columns)
{
	unsigned at = 0;
	while (s[at]) {
		if (((unsigned char)s[at] & 0xc0) != 0x80 && columns-- == 0)
			break;
		at++;
	}
	return at;
}

/* ---- output ---------------------------------------------------------------------------------- */

void out_init(struct out *o, const struct term *term)
{
	o->term = *term;
	o->buf = (struct buf)BUF_INIT;
}

void out_fini(struct out *o)
{
	buf_fini(&o->buf);
}

int out_flush(struct out *o)
{
	size_t len = buf_len(&o->buf);
	if (o->buf.failed)
		return o->buf.failed;
	errno = 0;
	if ((len && fwrite(buf_bytes(&o->buf), 1, len, stdout) != len) || fflush(stdout))
		return errno ? -errno : -EIO;
	buf_reset(&o->buf);
	return 0;
}

void out_put(struct out *o, const char *s)
{
	add_clean(&o->buf, &o->term, s, true);
}

void out_printf(struct out *o, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = str_vprintf(fmt, ap);
	va_end(ap);
	if (s)
		out_put(o, s);
	free(s);
}

void out_text(struct out *o, const char *s)
{
	add_clean(&o->buf, &o->term, s, false);
}

void out_lines(struct out *o, const char *s)
{
	add_clean(&o->buf, &o->term, s, true);
}

void out_style(struct out *o, enum style style)
{
	static const char *const codes[N_STYLES] = {
		[PLAIN] = "\033[0m", [BOLD] = "\033[1m",     [DIM] = "\033[2m",
		[RED] = "\033[31m",  [GREEN] = "\033[32m",   [YELLOW] = "\033[33m",
		[BLUE] = "\033[34m", [MAGENTA] = "\033[35m", [CYAN] = "\033[36m",
	};
	if (o->term.colour)
		(void)buf_add_str(&o->buf, codes[style]);
}

void out_styled(struct out *o, enum style style, const char *s)
{
	if (style != PLAIN)
		out_style(o, style);
	out_text(o, s);
	if (style != PLAIN)
		out_style(o, PLAIN);
}

void out_pad(struct out *o, unsigned n)
{
	while (n--)
		(void)buf_add(&o->buf, " ", 1);
}

void out_heading(struct out *o, const char *text)
{
	out_styled(o, BOLD, text);
	out_put(o, "\n");
}

void out_field(struct out *o, const char *name, const char *value)
{
	unsigned width = text_width(name);
	out_styled(o, DIM, name);
	out_pad(o, width < FIELD_WIDTH ? FIELD_WIDTH - width : 1);
	if (!value)
		return;
	out_wrap(o, value, FIELD_WIDTH, FIELD_WIDTH);
	out_put(o, "\n");
}

void out_fieldf(struct out *o, const char *name, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *value = str_vprintf(fmt, ap);
	va_end(ap);
	out_field(o, name, value ? value : "?");
	free(value);
}

/* Returns the bytes up to the next position for a line break: behind a blank or a comma. */
static size_t word_length(const char *s)
{
	size_t n = strcspn(s, " ,");
	while (s[n] == ',')
		n++;
	while (s[n] == ' ')
		n++;
	return n;
}

void out_wrap(struct out *o, const char *s, unsigned column, unsigned indent)
{
	char *clean = text_clean(&o->term, s);
	unsigned width = o->term.width;
	if (width && indent > width / 4 * 3)
		indent = WRAP_INDENT_LEAST;
	for (const char *p = clean; p && *p;) {
		char word[256];
		size_t n = word_length(p);
		n = n < sizeof word - 1 ? n : utf8_cut(p, sizeof word - 1);
		memcpy(word, p, n);
		word[n] = '\0';
		size_t visible = n;
		while (visible && word[visible - 1] == ' ')
			visible--;
		unsigned columns = text_width(word) - (unsigned)(n - visible);
		if (width && column + columns > width && column > indent) {
			while (buf_len(&o->buf) && o->buf.data[o->buf.end - 1] == ' ')
				o->buf.end--;
			(void)buf_add_str(&o->buf, "\n");
			out_pad(o, indent);
			column = indent;
		}
		(void)buf_add(&o->buf, word, n);
		column += text_width(word);
		p += n;
	}
	free(clean);
}

void out_item(struct out *o, enum style style, const char *mark, const char *s, unsigned indent)
{
	out_styled(o, style, mark);
	out_wrap(o, s, text_width(mark), indent);
	out_put(o, "\n");
}
