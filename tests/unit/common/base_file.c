#include "base/file.h"
#include "base/line.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/line_file.h"
#include "tests/unit/sync_seam.h"

static char dir[] = "/tmp/base_file.XXXXXX";

static void
setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
}

static void
teardown(void)
{
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(rmdir(dir), 0, "%s is not empty", dir);
}

static void
put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	io_close(&fd);
}

/* What file_read() says; the reason has to hold `want`. */
static void
expect_refused(const char *path, size_t max, int error, const char *want)
{
	struct buf out = { 0 }, why = { 0 };

	cr_expect_eq(
	    file_read(path, max, &out, &why), error, "%s: %s", path, want);
	cr_expect_not_null(
	    strstr(buf_str(&why), want), "%s: \"%s\"", path, buf_str(&why));
	buf_done(&out);
	buf_done(&why);
}

Test(base_file, reads_all_of_it, .init = setup, .fini = teardown)
{
	static char text[100001];
	struct buf out = { 0 }, why = { 0 };

	memset(text, 'x', sizeof(text) - 1);
	put("big", text);
	cr_expect_eq(file_read("big", 100000, &out, &why), 0);
	cr_expect_eq(out.len, 100000);
	cr_expect_str_eq(buf_str(&out), text);
	put("big", "");
	buf_reset(&out);
	cr_expect_eq(file_read("big", 100000, &out, &why), 0);
	cr_expect_str_eq(buf_str(&out), "");
	cr_expect_eq(why.len, 0);
	buf_done(&out);
	cr_expect_eq(unlink("big"), 0);
}

Test(base_file, F1_what_is_no_file, .init = setup, .fini = teardown)
{
	put("f", "12345");
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	expect_refused("absent", 10, -ENOENT, "No such file");
	expect_refused("f/below", 10, -ENOTDIR, "Not a directory");
	expect_refused(".", 10, -EISDIR, "is a directory");
	expect_refused("fifo", 10, -EINVAL, "not a regular file");
	expect_refused("/dev/zero", 10, -EINVAL, "not a regular file");
	expect_refused("f", 4, -EFBIG, "too large");
	/* A size of 0 and content without end. */
	expect_refused("/proc/self/maps", 4, -EFBIG, "too large");
	if (geteuid() != 0) {
		cr_assert_eq(chmod("f", 0), 0);
		expect_refused("f", 10, -EACCES, "Permission denied");
	}
	cr_expect_eq(unlink("f"), 0);
	cr_expect_eq(unlink("fifo"), 0);
}

Test(base_file, F8_root_trusts_no_file_that_others_may_change, .init = setup,
    .fini = teardown)
{
	struct buf out = { 0 }, why = { 0 };
	bool root = geteuid() == 0;

	cr_assert_eq(mkdir("d", 0755), 0);
	put("d/f", "text");
	cr_assert_eq(symlink("d/f", "link"), 0);
	cr_expect_eq(file_read("d/f", 10, &out, &why), 0);
	cr_expect_eq(file_read("link", 10, &out, &why), 0);
	if (root) {
		cr_assert_eq(chmod("d/f", 0666), 0);
		expect_refused("d/f", 10, -EPERM, "not trusted");
		cr_assert_eq(chmod("d/f", 0644), 0);
		cr_assert_eq(chmod("d", 0777), 0);
		expect_refused("d/f", 10, -EPERM, "/d");
		expect_refused("link", 10, -EPERM, "/d");
		cr_assert_eq(chmod("d", 01777), 0);
		cr_expect_eq(file_read("d/f", 10, &out, &why), 0);
		cr_assert_eq(chown("d/f", 65534, 0), 0);
		expect_refused("d/f", 10, -EPERM, "not trusted");
		cr_assert_eq(chown("d/f", 0, 65534), 0);
		cr_assert_eq(chmod("d/f", 0664), 0);
		expect_refused("d/f", 10, -EPERM, "not trusted");
		cr_assert_eq(chown("d/f", 0, 0), 0);
		cr_assert_eq(chown("d", 65534, 0), 0);
		expect_refused("d/f", 10, -EPERM, "/d");
		cr_assert_eq(chown("d", 0, 0), 0);
		cr_assert_eq(chmod("d", 0755), 0);
		cr_assert_eq(chmod(dir, 0777), 0);
		expect_refused("link", 10, -EPERM, "others than root");
		cr_assert_eq(chmod(dir, 0700), 0);
	} else {
		cr_assert_eq(chmod("d/f", 0666), 0);
		cr_expect_eq(file_read("d/f", 10, &out, &why), 0);
	}
	buf_done(&out);
	buf_done(&why);
	cr_expect_eq(unlink("link"), 0);
	cr_expect_eq(unlink("d/f"), 0);
	cr_expect_eq(rmdir("d"), 0);
}

/* Lines of a text, joined by `|`; the error behind `!NUMBER `. */
static void
join_lines(const char *text, size_t len, size_t max, struct buf *out)
{
	struct line_cursor c;
	struct buf b = { 0 };
	const char *why = NULL;
	char *line;
	int r;

	cr_assert_eq(buf_add(&b, text, len), 0);
	line_begin(&c, &b, max);
	while ((r = line_next(&c, &line, &why)) > 0)
		buf_printf(out, "%s|", line);
	if (r < 0)
		buf_printf(out, "!%u %s", c.number, why);
	buf_done(&b);
}

/* The old one or the new, whatever fails.
 * mutations: common/base/file.c: write_new() does not sync; file_replace() does
 * not sync the directory. */
Test(
    base_file, F7_replaced_whole_or_not_at_all, .init = setup, .fini = teardown)
{
	struct buf one = { 0 }, two = { 0 };
	char name[300];
	struct stat st;
	int d = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert_geq(d, 0);
	cr_assert_eq(buf_add_str(&one, "one\n"), 0);
	cr_assert_eq(buf_add_str(&two, "two\n"), 0);
	umask(077);
	sync_seam_begin();
	cr_assert_eq(file_replace(d, "f", 0644, &one), 0);
	cr_expect_str_eq(sync_seam_end(), "frd", "a power cut takes neither");
	cr_assert_eq(fstatat(d, "f", &st, 0), 0);
	cr_expect_eq(st.st_mode & 07777, 0644, "whatever the umask");
	cr_assert_eq(file_replace(d, "f", 0600, &two), 0);
	cr_assert_eq(mkdirat(d, "f.new", 0700), 0);
	cr_expect_eq(file_replace(d, "f", 0644, &one), -EISDIR);
	cr_assert_eq(unlinkat(d, "f.new", AT_REMOVEDIR), 0);
	cr_assert_eq(symlinkat("elsewhere", d, "f.new"), 0);
	cr_expect_eq(file_replace(d, "f", 0600, &two), 0, "it goes");
	cr_expect_eq(faccessat(d, "elsewhere", F_OK, 0), -1);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(file_replace(d, name, 0644, &one), -ENAMETOOLONG);
	cr_assert_eq(unlinkat(d, "f.new", 0), -1, "removed after a failure");
	cr_assert_eq(
	    io_pread_all(openat(d, "f", O_RDONLY | O_CLOEXEC), name, 10, 0), 4);
	cr_expect_eq(memcmp(name, "two\n", 4), 0);
	cr_assert_eq(unlinkat(d, "f", 0), 0);
	close(d);
	buf_done(&one);
	buf_done(&two);
}

Test(base_line, F4_lines_of_people)
{
	static const struct {
		const char *name, *in;
		size_t len;
		const char *want;
	} rows[] = {
		{ "nothing", "", 0, "" },
		{ "one", "a\n", 2, "a|" },
		{ "no newline at the end", "a\nb", 3, "a|b|" },
		{ "CRLF", "a\r\nb\r\n", 6, "a|b|" },
		{ "CR at the end", "a\r", 2, "a|" },
		{ "empty lines", "\n\nb\n", 4, "||b|" },
		{ "tab", "a\tb\n", 4, "a\tb|" },
		{ "UTF-8", "\xc3\xa4\n", 3, "\xc3\xa4|" },
		{ "byte-order mark",
		    "\xef\xbb\xbf"
		    "a\n",
		    5, "!1 byte-order mark" },
		{ "NUL", "ok\na\0b\n", 7, "ok|!2 NUL" },
		{ "NUL alone", "\0", 1, "!1 NUL" },
		{ "escape", "a\x1b\n", 3, "!1 control character" },
		{ "CR inside", "a\rb\n", 4, "!1 control character" },
		{ "two CR", "a\r\r\n", 4, "!1 control character" },
		{ "DEL", "\x7f\n", 2, "!1 control character" },
		{ "longest", "12345678\r\n", 10, "12345678|" },
		{ "too long", "123456789\n", 10, "!1 line too long" },
	};
	struct buf got = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&got);
		join_lines(rows[i].in, rows[i].len, 8, &got);
		cr_expect_str_eq(buf_str(&got), rows[i].want, "%s: \"%s\"",
		    rows[i].name, buf_str(&got));
	}
	buf_done(&got);
}

Test(base_line, comments_and_blanks)
{
	static const struct {
		const char *in, *want;
	} rows[] = {
		{ "", "" },
		{ " \t ", "" },
		{ "# all", "" },
		{ "a = b # c # d", "a = b" },
		{ "a = b\t#c", "a = b" },
		{ "a = b#c", "a = b#c" },
		{ "  a b  ", "a b" },
	};
	char line[64];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(line, sizeof(line), "%s", rows[i].in);
		line_uncomment(line);
		cr_expect_str_eq(line_trim(line), rows[i].want);
	}
}

/* ---- a row to a line ---- */

static int
count_line(void *arg, char *line, uint32_t number, const char **ret_word,
    const char **ret_why)
{
	unsigned *count = arg;

	cr_expect_eq(++*count, number);
	if (strcmp(line, "wrong") != 0)
		return 0;
	*ret_word = line;
	*ret_why = "is so";
	return -EINVAL;
}

static int
count_lines(bool may_be_absent, unsigned *ret_count, struct buf *error)
{
	const struct line_file how = {
		.max_bytes = 100,
		.max_line = 10,
		.may_be_absent = may_be_absent,
		.take = count_line,
	};

	*ret_count = 0;
	return line_file_read("f", &how, ret_count, error);
}

Test(base_file, lines_are_taken_to_the_first_wrong_one, .init = setup,
    .fini = teardown)
{
	struct buf error = { 0 };
	unsigned count;

	put("f", "a\n\n# b\nc");
	cr_expect_eq(count_lines(false, &count, &error), 0);
	cr_expect_eq(count, 4);
	put("f", "a\nwrong\nc\n");
	cr_expect_eq(count_lines(false, &count, &error), -EINVAL);
	cr_expect_eq(count, 2);
	cr_expect_str_eq(buf_str(&error), "f:2: \"wrong\" is so");
	buf_reset(&error);
	put("f", "a\nb234567890123\n");
	cr_expect_eq(count_lines(false, &count, &error), -EINVAL);
	cr_expect_eq(count, 1);
	cr_expect_not_null(strstr(buf_str(&error), "f:2: "));
	cr_assert_eq(unlink("f"), 0);
	buf_done(&error);
}

Test(base_file, lines_of_a_file_that_may_be_absent, .init = setup,
    .fini = teardown)
{
	struct buf error = { 0 };
	unsigned count;

	cr_expect_eq(count_lines(true, &count, &error), 0);
	cr_expect_str_eq(buf_str(&error), "");
	cr_expect_eq(count_lines(false, &count, &error), -ENOENT);
	cr_expect_not_null(strstr(buf_str(&error), "f: "));
	buf_done(&error);
}
