/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/grpc/message.h"

#include <inttypes.h>
#include <string.h>

#include "core/lib/util/str.h"
#include "core/lib/wire/be.h"

#define BUFFER_KEEP (16u << 10)
#define TIMEOUT_DIGITS_MAX 8u

/* ---- messages -------------------------------------------------------------------------------- */

int grpc_reader_add(struct grpc_reader *r, const uint8_t *data, size_t n)
{
	return n ? buf_add(&r->in, data, n) : 0;
}

int grpc_reader_next(const struct grpc_reader *r, struct grpc_message *ret, struct err *err)
{
	const uint8_t *p = buf_bytes(&r->in);
	if (!p || buf_len(&r->in) < GRPC_PREFIX_SIZE)
		return 0;
	uint32_t n = get_be32(p + 1);
	if (p[0] > 1)
		return err_set(err, -EBADMSG, "a message that begins with the byte %u", p[0]);
	if (n > r->message_max)
		return err_set(err, -EMSGSIZE,
			       "a message of %" PRIu32 " bytes, at most %" PRIu32 " are accepted",
			       n, r->message_max);
	if (buf_len(&r->in) - GRPC_PREFIX_SIZE < n)
		return 0;
	*ret = (struct grpc_message){p[0] == 1, p + GRPC_PREFIX_SIZE, n};
	return 1;
}

void grpc_reader_drop(struct grpc_reader *r)
{
	const uint8_t *p = buf_bytes(&r->in);
	if (p)
		buf_consume(&r->in, GRPC_PREFIX_SIZE + get_be32(p + 1));
	buf_shrink(&r->in, BUFFER_KEEP);
}

bool grpc_reader_partial(const struct grpc_reader *r)
{
	return buf_len(&r->in) > 0;
}

void grpc_reader_fini(struct grpc_reader *r)
{
	buf_fini(&r->in);
}

void grpc_prefix(uint8_t ret[GRPC_PREFIX_SIZE], uint32_t n)
{
	ret[0] = 0;
	put_be32(ret + 1, n);
}

int grpc_pack(struct buf *to, const ProtobufCMessage *msg)
{
	size_t n = protobuf_c_message_get_packed_size(msg);
	uint8_t *p = n > UINT32_MAX ? NULL : buf_reserve(to, GRPC_PREFIX_SIZE + n);
	if (!p)
		return -ENOMEM;
	grpc_prefix(p, (uint32_t)n);
	protobuf_c_message_pack(msg, p + GRPC_PREFIX_SIZE);
	buf_commit(to, GRPC_PREFIX_SIZE + n);
	return 0;
}

/* ---- headers --------------------------------------------------------------------------------- */

int32_t grpc_small_number(const char *text, size_t n)
{
	int32_t value = 0;
	if (!n || n > 4)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

int32_t grpc_status_of(const struct h2_fields *fields)
{
	const struct h2_field *f = h2_field_find(fields, "grpc-status");
	if (!f)
		return GRPC_STATUS_UNTOLD;
	int32_t status = grpc_small_number(f->value, f->value_len);
	return status < 0 || status > GRPC_STATUS_LAST ? GRPC_UNKNOWN : status;
}

bool grpc_is_content_type(const struct h2_field *type)
{
	return type && type->value_len >= sizeof GRPC_CONTENT_TYPE - 1 &&
	       memcmp(type->value, GRPC_CONTENT_TYPE, sizeof GRPC_CONTENT_TYPE - 1) == 0;
}

int grpc_timeout_ms(const struct h2_field *timeout, uint64_t *ret)
{
	static const struct {
		char unit;
		uint64_t ms, divisor;
	} units[] = {{'H', 3600000, 1}, {'M', 60000, 1}, {'S', 1000, 1},
		     {'m', 1, 1},	{'u', 1, 1000},	 {'n', 1, 1000000}};
	uint64_t value = 0;
	if (!timeout) {
		*ret = UINT64_MAX;
		return 0;
	}
	size_t n = timeout->value_len;
	if (n < 2 || n > TIMEOUT_DIGITS_MAX + 1)
		return -EINVAL;
	for (size_t i = 0; i < n - 1; i++) {
		if (timeout->value[i] < '0' || timeout->value[i] > '9')
			return -EINVAL;
		value = value * 10 + (uint64_t)(timeout->value[i] - '0');
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (timeout->value[n - 1] != units[i].unit)
			continue;
		*ret = (value * units[i].ms + units[i].divisor - 1) / units[i].divisor;
		return 0;
	}
	return -EINVAL;
}

/* ---- text ------------------------------------------------------------------------------------ */

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_decode_text(const uint8_t *data, size_t n, char *ret, size_t size)
{
	size_t len = 0;
	for (size_t i = 0; i < n && len + 1 < size; i++) {
		int high = data[i] == '%' && n - i > 2 ? hex_digit(data[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(data[i + 2]) : -1;
		ret[len] = (char)data[i];
		if (low >= 0) {
			ret[len] = (char)(high << 4 | low);
			i += 2;
		}
		if (!ret[len])
			ret[len] = '?';
		len++;
	}
	ret[len] = '\0';
	/* The text may have been cut within a character. */
	size_t cut = len + 1 == size ? utf8_cut(ret, len - (len > 0)) : len;
	ret[cut] = '\0';
	if (!utf8_valid(ret, cut))
		for (char *p = ret; *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
	str_one_line(ret);
}

void grpc_encode_text(const char *text, char *ret, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t len = 0;
	for (const unsigned char *p = (const unsigned char *)text; *p && len + 4 <= size; p++) {
		if (*p >= ' ' && *p <= '~' && *p != '%') {
			ret[len++] = (char)*p;
			continue;
		}
		ret[len++] = '%';
		ret[len++] = digits[*p >> 4];
		ret[len++] = digits[*p & 15];
	}
	ret[len] = '\0';
}
