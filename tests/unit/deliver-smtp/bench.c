#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"

#define PATIENCE 120 /* seconds; a test that needs them has failed */

/* ---- queue-send's end ---- */

static void
on_deliver(void *arg, struct agent_delivery *delivery)
{
	struct bench *b = arg;

	session_start(&b->context, delivery);
}

static void
on_cancel(
    void *arg UNUSED, struct agent_delivery *delivery, enum agent_stage stage)
{
	session_cancel(NULL, delivery, stage);
}

static void
on_close(void *arg, uint64_t connection)
{
	struct bench *b = arg;

	kept_close(&b->context, connection);
}

static void
on_orphaned(void *arg UNUSED)
{
}

static const struct agent_ops agent_ops = {
	.deliver = on_deliver,
	.close = on_close,
	.cancel = on_cancel,
	.orphaned = on_orphaned,
};

static void
take_frame(struct bench *b, const struct msg *msg)
{
	const struct msg_RESULT *r = &msg->u.RESULT;
	const struct msg_DONE *d = &msg->u.DONE;

	if (msg->type == MSG_AGENT) /* the first frame of the program */
		return;
	if (msg->type == MSG_RESULT) {
		buf_printf(&b->results, "%u%c%.*s:%.*s:%.*s\n", r->rcpt,
		    "SDF"[r->outcome], (int)r -> dsn.len, r->dsn.data,
		    (int)r->relay.len, r->relay.data, (int)r->text.len,
		    r->text.data);
		cr_assert_geq(r->conn_usec, 0);
		cr_assert_geq(r->xfer_usec, 0);
		return;
	}
	if (msg->type == MSG_CLOSED) {
		b->closed = msg->u.CLOSED.connection;
		return;
	}
	if (msg->type == MSG_GREETED) {
		b->greeted++;
		return;
	}
	b->done = true;
	b->kept = msg->type == MSG_KEPT;
	if (b->kept)
		return;
	if (msg->type == MSG_ELSEWHERE) {
		buf_printf(&b->elsewhere, "%.*s %u",
		    (int)msg->u.ELSEWHERE.site.len, msg->u.ELSEWHERE.site.data,
		    msg->u.ELSEWHERE.seconds);
		return;
	}
	cr_assert_eq(msg->type, MSG_DONE);
	b->site_failed = d->site == AGENT_SITE_FAILED;
	b->end = (enum agent_site)d->site;
	buf_printf(&b->site, "%.*s %.*s", (int)d->dsn.len, d->dsn.data,
	    (int)d->text.len, d->text.data);
}

static void
take_frames(struct bench *b)
{
	static struct chan_frame frame;

	while (chan_recv(b->link, &frame) == 1)
		take_frame(b, &frame.msg);
}

void
bench_template(char ret_path[BENCH_PATH])
{
	const char *dir = getenv("TMPDIR");

	snprintf(ret_path, BENCH_PATH, "%.55s/qsched-smtp-XXXXXX",
	    dir == NULL || *dir == '\0' ? "/tmp" : dir);
}

static void
make_file(struct bench *b, const char *content, size_t len)
{
	char path[BENCH_PATH];
	int fd;

	bench_template(path);
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, "head", 4), 0);
	cr_assert_eq(io_write_all(fd, content, len), 0);
	cr_assert_eq(io_write_all(fd, "tail", 4), 0);
	close(fd);
	b->fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(b->fd, 0);
	unlink(path);
	b->content = content;
	b->content_len = len;
}

void
bench_name_two(char ret_path[BENCH_PATH])
{
	static const char hosts[] = "127.0.0.2 two.test\n127.0.0.1 two.test\n";
	int fd;

	bench_template(ret_path);
	fd = mkstemp(ret_path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, hosts, sizeof(hosts) - 1), sizeof(hosts) - 1);
	close(fd);
	cr_assert_eq(setenv("CARES_HOSTS", ret_path, 1), 0);
}

static void
set_limits(struct settings *s)
{
	size_t i;

	snprintf(s->helo, sizeof(s->helo), "me.example");
	s->connect_limit = s->connect_limit_all = 10 * USEC_PER_SEC;
	s->mx = true;
	s->session_limit = 2;
	s->ways = (struct lookup_ways){ 1, { RESOLVE_NATIVE } };
	for (i = 0; i < DIALOG_NSTATES; i++)
		s->limits[i] = 10 * USEC_PER_SEC;
	s->idle_limit = s->reuse_limit = 3600 * USEC_PER_SEC;
}

void
bench_policies(
    struct bench *b, const struct conf_setting *settings, size_t count)
{
	struct buf why = { 0 };
	uint32_t i;

	conf_done(&b->conf);
	cr_assert_eq(
	    conf_from_settings("test", settings, count, &b->conf, &why), 0,
	    "%s", buf_str(&why));
	if (b->context.policies != NULL)
		policies_unref(&b->context.policies);
	cr_assert_eq(policies_new(&b->conf, &b->context.policies, &why), 0,
	    "%s", buf_str(&why));
	for (i = 0; i < b->conf.ntransports; i++)
		b->conf.transports[i].host_lookup = CONF_LOOKUP_NATIVE;
	b->context.conf = &b->conf;
	buf_done(&why);
}

struct conf_transport *
bench_transport(struct bench *b, const char *name)
{
	uint32_t i = 0;

	while (i < b->conf.ntransports &&
	    strcmp(b->conf.transports[i].name, name) != 0)
		i++;
	cr_assert_lt(i, b->conf.ntransports);
	return &b->conf.transports[i];
}

void
bench_open(struct bench *b, const char *content, size_t len)
{
	int pair[2];

	memset(b, 0, sizeof(*b));
	(void)signal(SIGPIPE, SIG_IGN); /* as every program does */
	b->number = 7;
	b->base = event_base_new();
	b->server.sock = -1;
	cr_assert_eq(chan_pair(pair), 0);
	b->link = pair[0];
	cr_assert_eq(agent_new(b->base, pair[1], &agent_ops, b, &b->agent), 0);
	b->context.base = b->base;
	TAILQ_INIT(&b->context.running);
	TAILQ_INIT(&b->context.kept);
	set_limits(&b->context.settings);
	bench_policies(b, NULL, 0);
	cr_assert_eq(lookups_open(&b->context.lookups, b->base), 0);
	make_file(b, content, len);
}

static void
make_whole(const struct bench *b, struct msg *msg)
{
	const struct msg_DELIVER f = msg->u.DELIVER;

	msg->type = MSG_DELIVER_WHOLE;
	msg->u.DELIVER_WHOLE = (struct msg_DELIVER_WHOLE){
		.job = f.job,
		.id = f.id,
		.kind = f.kind,
		.transport = f.transport,
		.nexthop = f.nexthop,
		.sender = f.sender,
		.flags = f.flags,
		.nrcpts = f.nrcpts,
		.rcpts = f.rcpts,
		.content = { b->content, b->content_len },
	};
}

static void
say_reuse(struct bench *b)
{
	const struct msg msg = { .type = MSG_REUSE,
		.u.REUSE = { b->number, b->connection } };

	cr_assert_eq(chan_send(b->link, &msg, -1), 0);
}

static void
say_site(struct bench *b)
{
	const struct msg msg = { .type = MSG_SITE,
		.u.SITE = { b->number, MSG_S(b->place) } };

	cr_assert_eq(chan_send(b->link, &msg, -1), 0);
}

void
bench_deliver(
    struct bench *b, enum agent_kind kind, const char *nexthop, uint32_t nrcpts)
{
	struct buf rcpts = { 0 }, hop = { 0 };
	struct msg msg = { .type = MSG_DELIVER };
	const char *port = strstr(nexthop, "%u");
	char address[32];
	uint32_t i;

	buf_add(&hop, nexthop,
	    port == NULL ? strlen(nexthop) : (size_t)(port - nexthop));
	if (port != NULL)
		buf_printf(&hop, "%u", b->server.port);
	for (i = 0; i < nrcpts; i++) {
		snprintf(address, sizeof(address), "r%u@x", i);
		cr_assert_eq(
		    agent_rcpt_add(&rcpts, i, address, strlen(address)), 0);
	}
	msg.u.DELIVER = (struct msg_DELIVER){
		.job = b->number,
		.id = MSG_S("ID"),
		.kind = (uint8_t)kind,
		.transport = MSG_S("smtp"),
		.nexthop = { buf_str(&hop), hop.len },
		.sender = MSG_S("s@y"),
		.content_off = 4,
		.content_len = b->content_len,
		.flags = b->flags,
		.nrcpts = nrcpts,
		.rcpts = { rcpts.data, rcpts.len },
	};
	b->done = b->kept = b->site_failed = false;
	b->end = AGENT_SITE_TALKED;
	b->greeted = 0;
	buf_reset(&b->results);
	buf_reset(&b->site);
	buf_reset(&b->elsewhere);
	if (b->whole)
		make_whole(b, &msg);
	if (b->reuse)
		say_reuse(b);
	if (b->place != NULL)
		say_site(b);
	cr_assert_eq(chan_send(b->link, &msg, b->whole ? -1 : b->fd), 0);
	buf_done(&rcpts);
	buf_done(&hop);
}

static void
on_patience(evutil_socket_t fd UNUSED, short what UNUSED, void *arg UNUSED)
{
	cr_assert(false, "nothing happens any more");
}

void
bench_turn(struct bench *b)
{
	event_base_loop(b->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	take_frames(b);
}

void
bench_run(struct bench *b)
{
	struct timeval tv = { PATIENCE, 0 };
	struct event *guard = evtimer_new(b->base, on_patience, NULL);

	evtimer_add(guard, &tv);
	while (!b->done) {
		event_base_loop(b->base, EVLOOP_ONCE);
		take_frames(b);
	}
	event_free(guard);
	cr_assert(TAILQ_EMPTY(&b->context.running));
}

void
bench_close(struct bench *b)
{
	session_abandon_all(&b->context, "4.3.2", "stop");
	kept_close_all(&b->context);
	agent_free(&b->agent);
	lookups_close(&b->context.lookups);
	policies_unref(&b->context.policies);
	conf_done(&b->conf);
	bench_server_close(&b->server);
	event_base_free(b->base);
	io_close(&b->link);
	io_close(&b->fd);
	buf_done(&b->results);
	buf_done(&b->site);
	buf_done(&b->elsewhere);
}

int
bench_reserve_port(struct bench *b)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(sock, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(getsockname(sock, (struct sockaddr *)&in, &len), 0);
	b->server.port = ntohs(in.sin_port);
	return sock;
}

void
bench_expect_end(struct bench *b, const char *result, enum agent_site end)
{
	cr_expect_not_null(strstr(buf_str(&b->results), result),
	    "want %s, got %s", result, buf_str(&b->results));
	cr_expect_eq(b->end, end, "%u: %s", b->end, buf_str(&b->site));
	cr_expect(b->site.len > 1 || end == AGENT_SITE_TALKED);
}

void
bench_expect(struct bench *b, const char *result, bool site_failed)
{
	bench_expect_end(
	    b, result, site_failed ? AGENT_SITE_FAILED : AGENT_SITE_TALKED);
}
