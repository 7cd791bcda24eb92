#include "qctl/show/explain.h"

#include <errno.h>

#include "base/io.h"

static int
connect_once(struct asker *a)
{
	if (a->tried)
		return a->error;
	a->tried = true;
	a->error = peer_connect(&a->peer, a->sp, a->limit);
	return a->error;
}

/* After the first error the answers are out of step. */
static int
give_up(struct asker *a, int error)
{
	a->error = error;
	peer_close(&a->peer);
	return error;
}

/* 1: there is more; 0: the end. */
static int
take(const struct chan_frame *frame, struct answer *answer, int *ret_error)
{
	const struct msg *msg = &frame->msg;

	if (msg->type == MSG_EXPLAINED) {
		answer->fact(answer->arg, &msg->u.EXPLAINED);
		return 1;
	}
	if (msg->type == MSG_EXPLAINED_END) {
		answer->left_out = msg->u.EXPLAINED_END.left_out;
		*ret_error = msg->u.EXPLAINED_END.error;
		return 0;
	}
	/* Of an earlier version nothing is known but that it goes away. */
	return msg->type == MSG_ACTED && msg->u.ACTED.error < 0
	    ? msg->u.ACTED.error
	    : -EBADMSG;
}

static int
ask(struct asker *a, const struct msg *question, struct answer *answer)
{
	static struct chan_frame frame; /* large */
	int error = 0, r = connect_once(a);

	if (r < 0)
		return r;
	r = peer_put(&a->peer, question);
	/* A connection that is refused is closed behind the reason. */
	if (r == 0 || r == -EPIPE)
		while ((r = peer_take(&a->peer, &frame)) == 0) {
			io_close(&frame.fd);
			r = take(&frame, answer, &error);
			if (r <= 0)
				break;
		}
	return r < 0 ? give_up(a, r) : error;
}

int
asker_message(struct asker *a, const struct queue_id *id, struct answer *answer)
{
	const struct msg question = { .type = MSG_EXPLAIN,
		.u.EXPLAIN = {
		    .serial = 1,
		    PEER_ID(id),
		} };

	return ask(a, &question, answer);
}

int
asker_address(struct asker *a, const char *sender, const char *address,
    bool expanded, struct answer *answer)
{
	const struct msg question = { .type = MSG_EXPLAIN_TO,
		.u.EXPLAIN_TO = {
		    .serial = 1,
		    .expanded = expanded,
		    .sender = MSG_S(sender),
		    .address = MSG_S(address),
		} };

	return ask(a, &question, answer);
}

void
asker_close(struct asker *a)
{
	if (a->tried && a->error == 0)
		peer_close(&a->peer);
}
