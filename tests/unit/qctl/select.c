#include "qctl/select/select.h"

#include "paper.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include <sys/mman.h>
#include <unistd.h>

#define ID "0660DBE6B105A6EF001A9EFE2"

static struct select s;
static struct buf error;

static void
fresh(void)
{
	select_done(&s);
	buf_reset(&error);
}

Test(select, patterns)
{
	static const struct {
		const char *pattern, *text;
		bool fits;
	} rows[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "*", "", true },
		{ "a@B.example", "A@b.EXAMPLE", true },
		{ "a@b", "a@b.example", false },
		{ "*@b.example", "x*y@b.example", true },
		{ "*.example", "example", false },
		{ "a*b*c", "aXbXbXc", true },
		{ "a*b*c", "aXbXbX", false },
		{ "**", "x", true },
		{ "[a]", "a", false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(text_matches(rows[i].pattern, rows[i].text),
		    rows[i].fits, "%s %s", rows[i].pattern, rows[i].text);
}

Test(select, words)
{
	static const struct {
		const char *word;
		int want;
		const char *says;
	} rows[] = {
		{ "ALL", 0, "" },
		{ "-", 0, "" },
		{ ID, 0, "" },
		{ "all", -EINVAL, "`all': neither" },
		{ "", -EINVAL, "neither" },
		{ ID "G", -EINVAL, "neither" },
		{ "sender=", -EINVAL, "sender takes an address, or <>" },
		{ "sender!=", -EINVAL, "sender takes an address, or <>" },
		{ "sender=<>", 0, "" },
		{ "recipient=", -EINVAL, "recipient takes a text" },
		{ "colour=red", -EINVAL, "the keys are id, sender" },
		{ "id=*4711*", 0, "" },
		{ "sender!=a@*", 0, "" },
		{ "reason!=refused", 0, "" },
		{ "older!=1h", -EINVAL, "!= goes with" },
		{ "state!=hold", -EINVAL, "!= goes with" },
		{ "!=x", -EINVAL, "the keys are" },
		{ "=x", -EINVAL, "the keys are" },
		{ "queue=1,4-6", 0, "" },
		{ "queue=0", -EINVAL, "queue takes 1 to 4095" },
		{ "queue=4096", -EINVAL, "queue takes" },
		{ "queue=6-4", -EINVAL, "queue takes" },
		{ "queue=1,", -EINVAL, "queue takes" },
		{ "queue=00000000000000000001", -EINVAL, "queue takes" },
		{ "state=hold,corrupt", 0, "" },
		{ "state=held", -EINVAL, "state takes maildrop" },
		{ "state=lock", -EINVAL, "state takes" },
		{ "older=2h", 0, "" },
		{ "older=2y", -EINVAL, "older takes a time, as 90s" },
		{ "younger=-1", -EINVAL, "younger takes" },
		{ "larger=10m", 0, "" },
		{ "smaller=x", -EINVAL, "smaller takes bytes" },
		{ "attempts=2", 0, "" },
		{ "fewer=1", 0, "" },
		{ "attempts=0", -EINVAL, "attempts takes a number of" },
		{ "attempts=", -EINVAL, "attempts takes" },
		{ "attempts=-1", -EINVAL, "attempts takes" },
		{ "attempts=4294967296", -EINVAL, "attempts takes" },
		{ "fewer=0", -EINVAL, "from 1; fewer=1: never tried" },
		{ "attempts!=2", -EINVAL, "!= goes with" },
		{ "reason=\033[2J", 0, "" },
		{ "\033]0;x\007", -EINVAL, "`?]0;x?'" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		fresh();
		cr_expect_eq(select_add(&s, rows[i].word, &error), rows[i].want,
		    "%s", rows[i].word);
		cr_expect_not_null(strstr(buf_str(&error), rows[i].says),
		    "%s: %s", rows[i].word, buf_str(&error));
	}
	fresh();
	buf_done(&error);
}

Test(select, states_and_queues)
{
	const unsigned hold = 1u << SPOOL_HOLD, corrupt = 1u << SPOOL_CORRUPT;

	cr_expect_eq(select_states(&s) & (hold | corrupt), hold,
	    "damaged files are no mail that waits");
	cr_assert_eq(select_add(&s, ID, &error), 0);
	cr_expect_eq(select_states(&s) & corrupt, corrupt);
	cr_assert_eq(select_add(&s, "state=corrupt,hold", &error), 0);
	cr_expect_eq(select_states(&s), hold | corrupt);
	cr_expect(select_queue(&s, 9));
	cr_assert_eq(select_add(&s, "queue=1,4-6", &error), 0);
	cr_expect(select_queue(&s, 1) && select_queue(&s, 5));
	cr_expect_not(select_queue(&s, 2) || select_queue(&s, 9));
	fresh();
}

static int
read_text(const char *text)
{
	int fd = memfd_create("ids", 0), r;

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	lseek(fd, 0, SEEK_SET);
	r = select_read_ids(&s, fd, &error);
	close(fd);
	return r;
}

Test(select, ids_of_a_stream)
{
	char many[6000 * sizeof(ID "\n")] = "";
	size_t i, n = sizeof(ID "\n") - 1;

	cr_expect_eq(read_text(ID "*\n\n  " ID "! 260 Sun\r\n" ID), 0);
	cr_expect_eq(s.nids, 3);
	fresh();
	cr_expect_eq(read_text(""), 0);
	cr_expect_eq(s.nids, 0);
	cr_expect_eq(read_text(ID "\nMail queue is empty\n"), -EINVAL);
	cr_expect_not_null(strstr(buf_str(&error), "`Mail'"));
	fresh();
	for (i = 0; i < 6000; i++)
		memcpy(many + i * n, ID "\n", n);
	cr_expect_eq(read_text(many), 0);
	cr_expect_eq(s.nids, 6000);
	fresh();
	memset(many, 'A', sizeof(many) - 1);
	cr_expect_eq(read_text(many), -EINVAL, "one line without an end");
	fresh();
	buf_done(&error);
}

/* By the sender that was given with -XV, and as it is stored. */
Test(select, senders_of_verp)
{
	static const struct {
		const char *word;
		bool fits;
	} rows[] = {
		{ "sender=*@test.example", true },
		{ "sender=L-@test.example", true },
		{ "sender=l-@test.example-@[]", true },
		{ "sender=*@example", false },
		{ "sender!=*@test.example", false },
	};
	static const char *const rcpts[] = { "a@b.example", NULL };
	struct paper p;
	size_t i;

	paper_open(&p, "l-@test.example-@[]", rcpts);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		cr_assert_eq(select_add(&s, rows[i].word, &error), 0);
		cr_expect_eq(select_fits(&s, &p.m, 1700000060000000) > 0,
		    rows[i].fits, "%s", rows[i].word);
		fresh();
	}
	paper_close(&p);
	buf_done(&error);
}
