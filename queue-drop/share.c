#include "queue-drop/share.h"

int
share_take(struct share *s, const struct conf *conf, const char *base UNUSED,
    uid_t uid)
{
	*s = (struct share){ .conf = conf, .uid = uid, .free = uid == 0 };
	return 0;
}

int
share_grows(struct share *s UNUSED, uint64_t bytes UNUSED)
{
	return 0;
}

int
share_pay(struct share *s UNUSED, const struct queue_file *file UNUSED)
{
	return 0;
}

const char *
share_reason(const struct share *s)
{
	return s->reason;
}

void
share_done(struct share *s)
{
	s->free = true;
}
