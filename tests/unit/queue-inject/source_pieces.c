#include "queue-inject/message.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LATER (clock_mono() + 60 * USEC_PER_SEC)

/* A pipe that gives its bytes one piece at a time is written by a thread. */
struct feeder {
	int fd;
	const char *data;
	size_t len, piece;
};

static void *
feed(void *arg)
{
	struct feeder *f = arg;
	size_t at, n;

	for (at = 0; at < f->len; at += n) {
		n = f->len - at < f->piece ? f->len - at : f->piece;
		if (io_write_all(f->fd, f->data + at, n) < 0)
			break;
	}
	close(f->fd);
	return NULL;
}

/* All that the source hands out, taken in steps of `take`. */
static int
drain(struct source *s, size_t take, struct buf *out)
{
	const char *data;
	size_t len;
	int r;

	while ((r = source_peek(s, &data, &len)) > 0) {
		size_t n = len < take ? len : take;

		cr_assert_gt(len, 0);
		cr_assert_eq(buf_add(out, data, n), 0);
		source_take(s, n);
	}
	return r;
}

static void
check_form(const char *data, size_t len, const char *want, size_t want_len,
    bool dot, bool lf, size_t piece)
{
	struct feeder f = { .data = data, .len = len, .piece = piece };
	struct buf out = { 0 };
	struct source s;
	pthread_t thread;
	int fds[2];

	signal(SIGPIPE, SIG_IGN); /* what follows a dot is not read */
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	f.fd = fds[1];
	cr_assert_eq(source_init(&s, fds[0], dot, LATER, -1), 0);
	s.lf = lf;
	cr_assert_eq(pthread_create(&thread, NULL, feed, &f), 0);
	cr_expect_eq(drain(&s, piece + 3, &out), 0);
	close(fds[0]);
	pthread_join(thread, NULL);
	cr_expect_eq(
	    out.len, want_len, "`%s' by %zu: %zu", data, piece, out.len);
	cr_expect_eq(memcmp(buf_str(&out), want, want_len), 0, "`%s' by %zu",
	    data, piece);
	source_done(&s);
	buf_done(&out);
}

static void
check(const char *data, size_t len, const char *want, size_t want_len, bool dot,
    size_t piece)
{
	check_form(data, len, want, want_len, dot, false, piece);
}

Test(source, lines_end_in_lf)
{
	static const struct {
		const char *data, *want, *dot;
	} cases[] = {
		{ "a\r\nb\n", "a\nb\n", "a\nb\n" },
		{ "a\rb\r\r\r\nc\r", "a\rb\nc\r", "a\rb\nc\r" },
		{ "\r\n\r\n", "\n\n", "\n\n" },
		{ "\r", "\r", "\r" },
		{ "\r\r\r", "\r\r\r", "\r\r\r" },
		{ "\r\ra", "\r\ra", "\r\ra" },
		{ "a\r\n.\r\nb\r\n", "a\n.\nb\n", "a\n" },
		{ "a\n.\r\r\nb", "a\n.\nb", "a\n" },
		{ "a\n.\r", "a\n.\r", "a\n.\r" },
		{ ".\rb\r\n", ".\rb\n", ".\rb\n" },
	};
	size_t i, piece;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		for (piece = 1; piece < 9; piece++) {
			const char *d = cases[i].data;

			check_form(d, strlen(d), cases[i].want,
			    strlen(cases[i].want), false, true, piece);
			check_form(d, strlen(d), cases[i].dot,
			    strlen(cases[i].dot), true, true, piece);
		}
}

Test(source, crs_without_end_are_passed_on)
{
	size_t len = 3 * SOURCE_BUFFER + 5, i;
	char *data = malloc(len), *want = malloc(len);

	cr_assert(data != NULL && want != NULL);
	memset(data, '\r', len);
	check_form(data, len, data, len, false, true, 60000);
	check_form(data, len, data, len, true, true, 60000);
	/* CRLF at each place around the end of the buffer. */
	for (i = SOURCE_BUFFER - 4; i < SOURCE_BUFFER + 4; i++) {
		memset(data, 'x', len);
		memset(want, 'x', len);
		memcpy(data + i, "\r\n", 2);
		want[i] = '\n';
		check_form(data, len, want, len - 1, true, true, 60000);
		check_form(data, len, want, len - 1, false, true, 60000);
	}
	free(data);
	free(want);
}

Test(source, a_lone_dot_ends_the_message)
{
	static const struct {
		const char *data, *want;
	} cases[] = {
		{ "a\n.\nb\n", "a\n" },
		{ ".\n", "" },
		{ ".", "" },
		{ "a\n.", "a\n" },
		{ "a\r\n.\r\nb", "a\r\n" },
		{ "a\n..\n.b\n. \n.\n", "a\n..\n.b\n. \n" },
		{ "a\n.\rb\n", "a\n.\rb\n" },
		{ "a\n.\r", "a\n.\r" },
		{ "a.\n", "a.\n" },
		{ "a\n\n.\n", "a\n\n" },
		{ "", "" },
		{ "a", "a" },
		{ "\n", "\n" },
		{ "a\r.\rb", "a\r.\rb" },
	};
	size_t i, piece;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		for (piece = 1; piece < 9; piece++) {
			check(cases[i].data, strlen(cases[i].data),
			    cases[i].want, strlen(cases[i].want), true, piece);
			check(cases[i].data, strlen(cases[i].data),
			    cases[i].data, strlen(cases[i].data), false, piece);
		}
}

Test(source, C1_large_input_is_whole)
{
	size_t len = 5 * SOURCE_BUFFER + 17, i;
	char *data = malloc(len);

	cr_assert_not_null(data);
	for (i = 0; i < len; i++)
		data[i] = (char)(i * 7 + i / 251);
	check(data, len, data, len, false, 60000);
	/* A dot at each place around the end of the buffer. */
	for (i = SOURCE_BUFFER - 4; i < SOURCE_BUFFER + 4; i++) {
		memset(data, 'x', len);
		memcpy(data + i, "\n.\n", 3);
		check(data, len, data, i + 1, true, 60000);
	}
	free(data);
}

Test(source, goes_back_while_it_can)
{
	static char data[3 * SOURCE_BUFFER];
	static const struct {
		size_t len, before;
		bool want;
	} cases[] = {
		{ 0, 0, true },
		{ 100, 0, true },
		{ 100, 40, true },
		{ SOURCE_BUFFER - 1, 0, true },
		{ SOURCE_BUFFER - 1, 500, true },
		{ SOURCE_BUFFER + 1, 0, false },
		{ 2 * SOURCE_BUFFER, SOURCE_BUFFER, false },
		/* The mark is where the buffer begins anew. */
		{ SOURCE_BUFFER + 100, SOURCE_BUFFER, true },
	};
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 11 + i / 253);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf head = { 0 }, once = { 0 }, again = { 0 };
		struct source s;
		const char *p;
		size_t len, left = cases[i].before;
		FILE *f = tmpfile();

		cr_assert_not_null(f);
		cr_assert_eq(io_write_all(fileno(f), data, cases[i].len), 0);
		lseek(fileno(f), 0, SEEK_SET);
		source_init(&s, fileno(f), false, LATER, -1);
		while (left > 0) {
			cr_assert_eq(source_peek(&s, &p, &len), 1);
			len = len < left ? len : left;
			source_take(&s, len);
			left -= len;
		}
		source_mark(&s);
		cr_expect_eq(drain(&s, 1000, &once), 0);
		cr_expect_eq(source_rewind(&s), cases[i].want, "case %zu", i);
		if (cases[i].want) {
			cr_expect_eq(drain(&s, 777, &again), 0);
			cr_expect_eq(again.len, once.len, "case %zu", i);
			cr_expect_eq(
			    memcmp(buf_str(&again), buf_str(&once), once.len),
			    0);
		}
		source_done(&s);
		buf_done(&head);
		buf_done(&once);
		buf_done(&again);
		fclose(f);
	}
}

Test(source, says_why_it_ended)
{
	int data[2], stop[2], dir = open("/", O_RDONLY | O_CLOEXEC);
	const char *p;
	size_t len;
	struct source s;

	cr_assert(pipe2(data, O_CLOEXEC) == 0 && pipe2(stop, O_CLOEXEC) == 0);
	source_init(&s, data[0], false, clock_mono() - 1, -1);
	cr_expect_eq(source_peek(&s, &p, &len), -ETIMEDOUT);
	source_done(&s);

	cr_assert_eq(write(stop[1], "x", 1), 1);
	cr_assert_eq(write(data[1], "x", 1), 1);
	source_init(&s, data[0], false, LATER, stop[0]);
	cr_expect_eq(source_peek(&s, &p, &len), -ECANCELED);
	source_done(&s);

	source_init(&s, dir, false, LATER, -1);
	cr_expect_eq(source_peek(&s, &p, &len), -EISDIR);
	source_done(&s);
	close(dir);
}
