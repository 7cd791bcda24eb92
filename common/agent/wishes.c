#include "agent/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
agent_wish_add(struct buf *wishes, const struct dsn_rcpt *dsn)
{
	const size_t len = strlen(dsn->orcpt);

	if (!dsn_notify_is_valid(dsn->notify) ||
	    (len > 0 && dsn_orcpt_check(dsn->orcpt, len) < 0))
		return -EBADRQC;
	return agent_record_add(wishes, dsn->notify, dsn->orcpt, len);
}

/* One wish of the list; false when there is no whole, right one. */
static bool
take_wish(struct msg_str *left, uint32_t *ret_notify, struct msg_str *ret_orcpt)
{
	return agent_record_take(left, ret_notify, ret_orcpt) &&
	    dsn_notify_is_valid(*ret_notify) &&
	    (ret_orcpt->len == 0 ||
		dsn_orcpt_check(ret_orcpt->data, ret_orcpt->len) == 0);
}

static bool
wishes_are_right(const struct msg_WISHES *f, uint32_t nrcpts)
{
	struct msg_str left = f->rcpts, orcpt;
	uint32_t i, notify;

	if (!dsn_ret_is_valid(f->ret) ||
	    (f->envid.len > 0 && dsn_envid_check(f->envid.data, f->envid.len)))
		return false;
	for (i = 0; i < nrcpts; i++)
		if (!take_wish(&left, &notify, &orcpt))
			return false;
	return left.len == 0;
}

/* The head of each leaves room for its NUL. */
static void
fill(struct agent_delivery *d, const struct msg_WISHES *f)
{
	struct msg_str left = f->rcpts, orcpt;
	char *next = d->wishes;
	uint32_t i, notify;

	d->dsn.ret = f->ret;
	if (f->envid.len > 0)
		(void)dsn_envid_set(&d->dsn, f->envid.data, f->envid.len);
	for (i = 0; i < d->nrcpts; i++) {
		take_wish(&left, &notify, &orcpt);
		d->rcpts[i].notify = (uint8_t)notify;
		if (orcpt.len == 0)
			continue;
		memcpy(next, orcpt.data, orcpt.len);
		next[orcpt.len] = '\0';
		d->rcpts[i].orcpt = next;
		next += orcpt.len + 1;
	}
}

int
agent_delivery_wish(
    struct agent_delivery *d, const struct msg_WISHES *f, const char **ret_what)
{
	ASSERT(d->wishes == NULL);
	*ret_what = "wishes of the sender";
	if (!wishes_are_right(f, d->nrcpts))
		return -EBADMSG;
	*ret_what = "out of memory";
	d->wishes = malloc(f->rcpts.len);
	if (d->wishes == NULL)
		return -ENOMEM;
	fill(d, f);
	return 0;
}
