/* The agent's end of a world. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void
copy(char *out, size_t size, const struct msg_str *s)
{
	cr_assert_lt(s->len, size);
	memcpy(out, s->data, s->len);
	out[s->len] = '\0';
}

static uint32_t
get_u32(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v)); /* tests run on little-endian machines */
	return v;
}

/* A frame with a descriptor as one with the content: what it would be there. */
static void
take_whole(struct chan_frame *frame)
{
	static char content[1 << 20];
	const struct msg_DELIVER f = frame->msg.u.DELIVER;

	if (frame->msg.type == MSG_DELIVER_WHOLE) {
		cr_assert_eq(frame->fd, -1);
		return;
	}
	cr_assert_eq(frame->msg.type, MSG_DELIVER);
	cr_assert_eq(fcntl(frame->fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	cr_assert_leq(f.content_len, sizeof(content));
	cr_assert_eq(
	    pread(frame->fd, content, f.content_len, (off_t)f.content_off),
	    (ssize_t)f.content_len);
	frame->msg.u.DELIVER_WHOLE = (struct msg_DELIVER_WHOLE){
		.job = f.job,
		.id = f.id,
		.nexthop = f.nexthop,
		.sender = f.sender,
		.nrcpts = f.nrcpts,
		.rcpts = f.rcpts,
		.content = { content, f.content_len },
	};
}

/* The first recipient's. */
static void
note_wishes(struct world *w, const struct msg_WISHES *f)
{
	struct msg_str orcpt;

	w->wishes.number = f->job;
	w->wishes.ret = f->ret;
	w->wishes.notify = get_u32(f->rcpts.data);
	orcpt =
	    (struct msg_str){ f->rcpts.data + 8, get_u32(f->rcpts.data + 4) };
	copy(w->wishes.orcpt, sizeof(w->wishes.orcpt), &orcpt);
	copy(w->wishes.envid, sizeof(w->wishes.envid), &f->envid);
}

static bool
next_delivery(struct world *w, struct msg_REUSE *reuse)
{
	struct chan_frame *frame = &w->from_agent;

	w->placed = 0;
	while (w->agent >= 0 && chan_recv(w->agent, frame) == 1) {
		if (frame->msg.type == MSG_REUSE)
			*reuse = frame->msg.u.REUSE;
		else if (frame->msg.type == MSG_WISHES)
			note_wishes(w, &frame->msg.u.WISHES);
		else if (frame->msg.type == MSG_SITE) {
			w->placed = frame->msg.u.SITE.job;
			copy(w->site, sizeof(w->site), &frame->msg.u.SITE.site);
		} else if (frame->msg.type == MSG_CLOSE)
			w->closes[w->ncloses++ % 16] =
			    frame->msg.u.CLOSE.connection;
		else if (frame->msg.type == MSG_CANCEL)
			w->cancelled = frame->msg.u.CANCEL;
		else
			return true;
	}
	return false;
}

bool
world_take(struct world *w, struct world_delivery *ret)
{
	struct chan_frame *frame = &w->from_agent;
	const struct msg_DELIVER_WHOLE *f = &frame->msg.u.DELIVER_WHOLE;
	struct msg_REUSE reuse = { 0 };
	struct msg_str rcpts, one;
	uint32_t i;

	if (!next_delivery(w, &reuse))
		return false;
	take_whole(frame);
	*ret = (struct world_delivery){ .number = f->job,
		.may_keep = reuse.job == f->job,
		.connection = reuse.connection,
		.placed = w->placed == f->job,
		.nrcpts = f->nrcpts,
		.fd = frame->fd,
		.content = f->content };
	copy(ret->id, sizeof(ret->id), &f->id);
	copy(ret->nexthop, sizeof(ret->nexthop), &f->nexthop);
	copy(ret->sender, sizeof(ret->sender), &f->sender);
	cr_assert_leq(f->nrcpts, AGENT_RCPTS_MAX);
	rcpts = f->rcpts;
	for (i = 0; i < f->nrcpts; i++) {
		ret->rcpt[i] = get_u32(rcpts.data);
		one =
		    (struct msg_str){ rcpts.data + 8, get_u32(rcpts.data + 4) };
		if (i == 0)
			copy(ret->first, sizeof(ret->first), &one);
		rcpts.data += 8 + one.len;
		rcpts.len -= 8 + one.len;
	}
	cr_assert_eq(rcpts.len, 0);
	return true;
}

void
world_take_one(struct world *w, struct world_delivery *ret)
{
	cr_assert(world_take(w, ret));
	close(ret->fd);
}

void
world_result(struct world *w, const struct world_delivery *delivery,
    uint32_t place, enum agent_outcome outcome)
{
	static const char *const dsn[] = { "2.1.5", "4.2.1", "5.1.1" };
	const char *said = w->said == NULL ? "as told" : w->said;

	world_send(w->agent,
	    &(struct msg){ .type = MSG_RESULT,
		.u.RESULT = {
		    .job = delivery->number,
		    .rcpt = delivery->rcpt[place],
		    .outcome = (uint8_t)outcome,
		    .dsn = MSG_S(dsn[outcome]),
		    .relay = MSG_S("test"),
		    .text = MSG_S(said),
		} });
}

static void
send_done_frame(struct world *w, const struct world_delivery *delivery,
    enum agent_site site, const char *dsn, const char *text)
{
	world_send(w->agent,
	    &(struct msg){ .type = MSG_DONE,
		.u.DONE = {
		    .job = delivery->number,
		    .site = (uint8_t)site,
		    .dsn = { dsn, strlen(dsn) },
		    .text = { text, strlen(text) },
		} });
}

void
world_done(struct world *w, const struct world_delivery *delivery)
{
	send_done_frame(w, delivery, AGENT_SITE_TALKED, "", "");
}

void
world_site_failed(struct world *w, const struct world_delivery *delivery)
{
	send_done_frame(
	    w, delivery, AGENT_SITE_FAILED, "4.4.1", "no connection");
}

void
world_site_doubted(struct world *w, const struct world_delivery *delivery)
{
	send_done_frame(
	    w, delivery, AGENT_SITE_DOUBTED, "4.4.2", "no connection");
}

void
world_agent_failed(struct world *w, const struct world_delivery *delivery)
{
	send_done_frame(
	    w, delivery, AGENT_SITE_TALKED, "4.3.0", "no descriptors");
}

uint32_t
world_deliver(struct world *w, enum agent_outcome outcome)
{
	struct world_delivery delivery;
	uint32_t n = 0, i;

	for (; world_take(w, &delivery); n++) {
		close(delivery.fd);
		for (i = 0; i < delivery.nrcpts; i++)
			world_result(w, &delivery, i, outcome);
		world_done(w, &delivery);
		world_run(w);
	}
	return n;
}
