/* The records on standard input, in pieces of any size. */
#include "queue-drop/door.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct stream s;

/* A writer of its own that gives so many bytes at a time. */
static pid_t
feed(const char *data, size_t len, size_t piece)
{
	int ends[2];
	pid_t pid;

	cr_assert_eq(pipe(ends), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		close(ends[0]);
		for (; len > 0; data += piece, len -= piece) {
			piece = piece < len ? piece : len;
			if (write(ends[1], data, piece) != (ssize_t)piece)
				_exit(1);
		}
		_exit(0);
	}
	close(ends[1]);
	stream_init(&s, ends[0]);
	return pid;
}

static void
finish(pid_t pid)
{
	close(s.fd);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(stream, S13_records_in_pieces)
{
	static const char data[] = "C\x05\0\0\0helloT\x03\0\0\0a@bE\0\0\0\0";
	static const size_t pieces[] = { 1, 2, 3, 7, 100 };
	struct stream_record r;
	const char *bytes;
	char got[8], text[8];
	size_t i, n;

	for (i = 0; i < ARRAY_LEN(pieces); i++) {
		pid_t pid = feed(data, sizeof(data) - 1, pieces[i]);

		cr_assert_eq(stream_next(&s, &r), 0);
		cr_assert_eq(r.type, 'C');
		for (n = 0; r.left > 0;) {
			int64_t k = stream_bytes(&s, &r, &bytes);

			cr_assert_gt(k, 0);
			memcpy(got + n, bytes, (size_t)k);
			n += (size_t)k;
		}
		cr_assert_eq(n, 5);
		cr_assert_eq(memcmp(got, "hello", 5), 0);
		cr_assert_eq(stream_next(&s, &r), 0);
		cr_assert_eq(r.type, 'T');
		cr_assert_eq(r.left, 3);
		cr_assert_eq(stream_short(&s, &r, text, sizeof(text)), 0);
		cr_assert_eq(memcmp(text, "a@b", 3), 0);
		cr_assert_eq(stream_next(&s, &r), 0);
		cr_assert_eq(r.type, 'E');
		cr_assert_eq(stream_end(&s), 0);
		finish(pid);
	}
}

Test(stream, S13_cut_off_and_too_long)
{
	static const char data[] = "T\xff\xff\xff\xff"
				   "ab";
	struct stream_record r;
	const char *bytes;
	char text[8];
	pid_t pid = feed(data, sizeof(data) - 1, 100);

	cr_assert_eq(stream_next(&s, &r), 0);
	cr_assert_eq(r.left, UINT32_MAX);
	cr_assert_eq(stream_short(&s, &r, text, sizeof(text)), -EPROTO);
	cr_assert_eq(stream_bytes(&s, &r, &bytes), 2);
	cr_assert_eq(stream_bytes(&s, &r, &bytes), -EPROTO);
	cr_assert_eq(stream_next(&s, &r), -EPROTO);
	cr_assert_eq(stream_end(&s), 0);
	finish(pid);
	pid = feed("T\1\0", 3, 100);
	cr_assert_eq(stream_next(&s, &r), -EPROTO);
	finish(pid);
	pid = feed("x", 1, 1);
	cr_assert_eq(stream_end(&s), -EPROTO);
	finish(pid);
	stream_init(&s, -1);
	cr_assert_eq(stream_next(&s, &r), -EBADF);
}
