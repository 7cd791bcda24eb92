#include "paper.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const rcpts[] = { "a@b.example", "done@b.example",
	"failed@\"q\\\\.example", "caf\xc3\xa9\xff@c.example", NULL };

static void
in_utc(void)
{
	setenv("TZ", "UTC0", 1);
	tzset();
}

TestSuite(shown, .init = in_utc);

static const struct options options = { .content = true };
static const struct view view = { &options, 1700000060000000, true, NULL,
	NULL };

Test(shown, A7_list_as_postqueue_does)
{
	struct paper p;

	paper_open(&p, "s@x.example", rcpts);
	cr_expect_eq(list_text(&p.w, &p.m, &view), 0);
	cr_expect_str_eq(paper_text(&p),
	    "ID1                                 16  Tue Nov 14 22:13:20"
	    " s@x.example\n"
	    "                                                            "
	    "a@b.example\n"
	    "                                                            "
	    "failed@\"q\\\\.example\n"
	    "                                                            "
	    "caf\xc3\xa9?@c.example\n\n");
	p.m.dir = SPOOL_ACTIVE;
	cr_expect_eq(list_text(&p.w, &p.m, &view), 0);
	cr_expect_eq(strncmp(paper_text(&p), "ID1* ", 5), 0);
	p.m.dir = SPOOL_HOLD;
	cr_expect_eq(list_text(&p.w, &p.m, &view), 0);
	cr_expect_eq(strncmp(paper_text(&p), "ID1! ", 5), 0);
	paper_close(&p);
}

Test(shown, null_sender)
{
	struct paper p;

	paper_open(&p, "", rcpts);
	cr_expect_eq(list_text(&p.w, &p.m, &view), 0);
	cr_expect_not_null(strstr(paper_text(&p), " MAILER-DAEMON\n"));
	paper_close(&p);
}

Test(shown, json_is_escaped)
{
	struct paper p;

	paper_open(&p, "\"a b\"@x.example", rcpts);
	cr_expect_eq(list_json(&p.w, &p.m, &view), 0);
	cr_expect_str_eq(paper_text(&p),
	    "{\"queue_name\": \"deferred\", \"queue_id\": \"ID1\", "
	    "\"arrival_time\": 1700000000, \"message_size\": 16, "
	    "\"forced_expire\": false, \"sender\": "
	    "\"\\\"a b\\\"@x.example\", \"queue\": 7, \"recipients\": ["
	    "{\"address\": \"a@b.example\"}, "
	    "{\"address\": \"failed@\\\"q\\\\\\\\.example\", \"failed\": "
	    "true}, "
	    "{\"address\": \"caf\xc3\xa9?@c.example\"}]}\n");
	paper_close(&p);
}

Test(shown, what_the_sender_asked_of_reports)
{
	static const struct dsn_mail mail = { DSN_RET_HDRS, "QQ+2B1" };
	static const struct dsn_rcpt wish = { DSN_SUCCESS | DSN_DELAY,
		"rfc822;q+40x" };
	static const char *const two[] = { "a@b.example", "done@b.example",
		NULL };
	struct paper p;
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;

	paper_open_wishes(&p, "s@x.example", two, &mail, &wish);
	cr_expect_eq(list_json(&p.w, &p.m, &view), 0);
	cr_expect_str_eq(paper_text(&p),
	    "{\"queue_name\": \"deferred\", \"queue_id\": \"ID1\", "
	    "\"arrival_time\": 1700000000, \"message_size\": 16, "
	    "\"forced_expire\": false, \"sender\": \"s@x.example\", "
	    "\"ret\": \"hdrs\", \"envid\": \"QQ+2B1\", \"queue\": 7, "
	    "\"recipients\": [{\"address\": \"a@b.example\", "
	    "\"notify\": \"success,delay\", \"orcpt\": "
	    "\"rfc822;q+40x\"}]}\n");
	queue_rcpt_begin(&cursor, &p.m.file);
	while (queue_rcpt_next(&cursor, p.m.fd, &rcpt) > 0)
		if (rcpt.index == 1)
			queue_file_mark(
			    &spool_sys_real, p.m.fd, rcpt.offset, RCPT_RELAYED);
	cr_expect_eq(show_text(&p.w, &p.m, &view), 0);
	cr_expect_not_null(strstr(paper_text(&p),
	    "Sender: <s@x.example>\nReturn: hdrs\nEnvelope id: QQ+2B1\n"
	    "Recipient (pending): <a@b.example>\n"
	    "  Notify: success,delay\n  Original: rfc822;q+40x\n"
	    "Recipient (relayed): <done@b.example>\n"
	    "  Notify: success,delay\n  Original: rfc822;q+40x\n"));
	paper_close(&p);
}

Test(shown, damage)
{
	struct paper p;

	paper_open(&p, "", rcpts);
	snprintf(p.m.damage, sizeof(p.m.damage), "trailer \033 checksum");
	snprintf(p.m.id, sizeof(p.m.id), "\033[2J");
	p.m.file = (struct queue_file){ 0 };
	p.m.file_size = 99;
	cr_expect_eq(list_text(&p.w, &p.m, &view), 0);
	cr_expect_str_eq(paper_text(&p),
	    "?[2J                                99                      \n"
	    "                                                 "
	    "(damaged: trailer ? checksum)\n\n");
	cr_expect_eq(list_json(&p.w, &p.m, &view), 0);
	cr_expect_not_null(strstr(paper_text(&p),
	    "\"sender\": \"\", \"queue\": 7, \"damage\": \"trailer ? "
	    "checksum\", \"recipients\": []}\n"));
	cr_expect_eq(show_text(&p.w, &p.m, &view), 0);
	cr_expect_null(strchr(paper_text(&p), '\033'));
	paper_close(&p);
}

Test(shown, A7_show)
{
	struct paper p;

	paper_open(&p, "s@x.example", rcpts);
	p.m.due_wall = 1700000360000000;
	cr_expect_eq(show_text(&p.w, &p.m, &view), 0);
	cr_expect_str_eq(paper_text(&p),
	    "ID: ID1\nState: deferred\n"
	    "File: /q/queue7/deferred/19/4711\n"
	    "Arrived: Tue, 14 Nov 2023 22:13:20 +0000 (59s ago)\n"
	    "Due: Tue, 14 Nov 2023 22:19:20 +0000 (in 5m)\n"
	    "Size: 16 bytes of content, 251 of the file\n"
	    "Submitted by: uid 1000, to queue 7\n"
	    "Sender: <s@x.example>\n"
	    "Recipient (pending): <a@b.example>\n"
	    "Recipient (delivered): <done@b.example>\n"
	    "Recipient (failed): <failed@\"q\\\\.example>\n"
	    "Recipient (pending): <caf\xc3\xa9?@c.example>\n"
	    "\nSubject: x\n\n1?\t\n\n");
	paper_close(&p);
}

Test(shown, total)
{
	struct worker_totals t = { .messages = 1, .bytes = 2047 };
	struct buf out = { 0 };

	list_total(&t, &out);
	t.messages = 12;
	list_total(&t, &out);
	cr_expect_str_eq(buf_str(&out),
	    "-- 1 Kbytes in 1 Request.\n-- 1 Kbytes in 12 Requests.\n");
	buf_done(&out);
}

/* ---- shape ---- */

static void
count(struct paper *p, struct view *v, usec_t age)
{
	v->now_wall = p->m.file.arrival_wall + age;
	cr_assert_eq(shape_count(&p->w, &p->m, v), 0);
}

Test(shown, shape_by_age)
{
	const usec_t minute = 60 * USEC_PER_SEC;
	const struct options by_rcpt = { 0 };
	struct view v = { .options = &by_rcpt };
	struct buf out = { 0 };
	struct paper p;

	v.rows = shape_new();
	paper_open(&p, "s@x.example", rcpts);
	count(&p, &v, -minute);
	count(&p, &v, 5 * minute);
	count(&p, &v, 5 * minute + 1);
	count(&p, &v, 1280 * minute);
	count(&p, &v, 1280 * minute + 1);
	cr_expect_eq(shape_print(v.rows, v.options, &out), 0);
	cr_expect_str_eq(buf_str(&out),
	    "              T 5 10 20 40 80 160 320 640 1280 1280+\n"
	    "       TOTAL 15 6  3  0  0  0   0   0   0    3     3\n"
	    "\"q\\\\.example  5 2  1  0  0  0   0   0   0    1     1\n"
	    "   b.example  5 2  1  0  0  0   0   0   0    1     1\n"
	    "   c.example  5 2  1  0  0  0   0   0   0    1     1\n",
	    "%s", buf_str(&out));
	buf_done(&out);
	shape_free(&v.rows);
	paper_close(&p);
}

Test(shown, shape_rows_add_up)
{
	const struct options by_sender = { .by = SHAPE_BY_SENDER };
	struct view v = { .options = &by_sender };
	struct shape *all = shape_new();
	uint64_t row[10 + 1] = { 0 };
	struct buf out = { 0 };
	struct paper p;

	v.rows = shape_new();
	paper_open(&p, "", rcpts);
	count(&p, &v, 0);
	row[0] = 2;
	memcpy(&row[10], "x.e", 4);
	cr_expect_eq(shape_take(all, row, 10 * sizeof(*row) + 3), 0);
	cr_expect_eq(shape_take(all, row, 10 * sizeof(*row) + 3), 0);
	cr_expect_eq(shape_take(all, row, 10), 0, "no row");
	cr_expect_eq(shape_print(all, v.options, &out), 0);
	cr_expect_not_null(strstr(buf_str(&out), "\n  x.e 4 4 "));
	buf_reset(&out);
	cr_expect_eq(shape_print(v.rows, v.options, &out), 0);
	cr_expect_not_null(strstr(buf_str(&out), "\nMAILER-DAEMON 1 1 "));
	buf_done(&out);
	shape_free(&v.rows);
	shape_free(&all);
	paper_close(&p);
}

/* All local senders have the domain of the host. Only the address or the uid
 * shows who sends most. */
Test(shown, shape_by_each_key)
{
	static const struct {
		enum shape_by by;
		const char *text, *json;
	} cases[] = {
		{ SHAPE_BY_DOMAIN, "\n   b.example 1 1",
		    "{\"domain\": \"b.example\", \"recipients\": 1, \"ages\": "
		    "{\"5\": 1, \"10\": 0, " },
		{ SHAPE_BY_SENDER, "\nflood@host.example 1 1",
		    "{\"sender\": \"flood@host.example\", \"messages\": 1, " },
		{ SHAPE_BY_SENDER_DOMAIN, "\nhost.example 1 1",
		    "{\"sender_domain\": \"host.example\", \"messages\": 1, " },
		{ SHAPE_BY_UID, "\n4000111222 1 1",
		    "{\"uid\": 4000111222, \"user\": \"\", \"messages\": 1, " },
	};
	struct buf out = { 0 };
	struct paper p;
	size_t i;

	paper_open(&p, "flood@host.example", rcpts);
	p.m.file.uid = 4000111222;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct options o = { .by = cases[i].by };
		struct view v = { .options = &o, .rows = shape_new() };

		count(&p, &v, 0);
		buf_reset(&out);
		cr_expect_eq(shape_print(v.rows, &o, &out), 0);
		cr_expect_not_null(
		    strstr(buf_str(&out), cases[i].text), "%s", buf_str(&out));
		o.json = true;
		buf_reset(&out);
		cr_expect_eq(shape_print(v.rows, &o, &out), 0);
		cr_expect_not_null(
		    strstr(buf_str(&out), cases[i].json), "%s", buf_str(&out));
		cr_expect_null(strstr(buf_str(&out), "TOTAL"));
		shape_free(&v.rows);
	}
	buf_done(&out);
	paper_close(&p);
}
