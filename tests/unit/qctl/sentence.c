/* The sentence of each situation. */
#include "qctl/show/explain.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ipc/situation.h"

#define NOW ((usec_t)1700000060000000)

static void
in_utc(void)
{
	setenv("TZ", "UTC0", 1);
	tzset();
}

TestSuite(sentence, .init = in_utc);

static const char *
sentence(struct msg_EXPLAINED f)
{
	static struct buf out;

	buf_reset(&out);
	sentence_add(&out, &f, NOW);
	cr_assert_eq(out.error, 0);
	return buf_str(&out);
}

static struct msg_EXPLAINED
full(enum situation situation)
{
	return (struct msg_EXPLAINED){ .situation = situation,
		.recipients = 1,
		.used = 2,
		.limit = 3,
		.ahead = 4,
		.more = 1,
		.need = 550,
		.have = 20,
		.pid = 77,
		.since_wall = NOW - 12 * USEC_PER_SEC,
		.until_wall = NOW + 300 * USEC_PER_SEC,
		.site = MSG_S("smtp/x.example"),
		.other = MSG_S("0AB"),
		.why = MSG_S("no \033[2Jway") };
}

/* Every number of the enum has a sentence, but for those that qctl itself says,
 * and none has what is no text. */
Test(sentence, A7_every_situation_has_one)
{
	static const int ends[][2] = {
		{ SITUATION_READ_ONLY, SITUATION_ACTIVE_FULL },
		{ SITUATION_LATER, SITUATION_OFFERED },
		{ SITUATION_ENTERING, SITUATION_ENTERING },
		{ SITUATION_READING, SITUATION_MOVING },
		{ SITUATION_DELIVERING, SITUATION_NEXT },
		{ SITUATION_OPEN, SITUATION_UNPLACED },
	};
	size_t i;
	int n;

	for (i = 0; i < ARRAY_LEN(ends); i++)
		for (n = ends[i][0]; n <= ends[i][1]; n++) {
			const char *said = sentence(full((enum situation)n));

			cr_expect_neq(*said, '\0', "%d", n);
			cr_expect_null(strpbrk(said, "\033%"), "%s", said);
			cr_expect_eq(
			    strchr(said, '\n'), said + strlen(said) - 1);
		}
	cr_expect_str_eq(sentence(full((enum situation)9999)), "");
	cr_expect_str_eq(sentence(full(SITUATION_UNKNOWN)), "");
}

Test(sentence, figures)
{
	static const struct {
		enum situation situation;
		const char *want;
	} rows[] = {
		{ SITUATION_WINDOW,
		    "    Waiting: 1 recipient for smtp/x.example: its window "
		    "is "
		    "full, 2 of 3 deliveries; messages before this one: 4 or "
		    "more. Next: a delivery starts when one has ended.\n" },
		{ SITUATION_DELIVERING,
		    "    Being delivered for 12s: 1 recipient to "
		    "smtp/x.example, by no ?[2Jway (pid 77). Next: the server "
		    "or program answers, or a time limit ends the attempt.\n" },
		{ SITUATION_DEAD,
		    "    Dead: smtp/x.example since Tue, 14 Nov 2023 22:14:08 "
		    "+0000 (12s ago), until Tue, 14 Nov 2023 22:19:20 +0000 "
		    "(in 5m): no ?[2Jway.\n" },
		{ SITUATION_BEHIND,
		    "    Waiting: 1 recipient for smtp/x.example: behind the "
		    "larger message 0AB, of which 2 of 3 deliveries have "
		    "begun. Next: this one overtakes when deliveries of the "
		    "other have earned it 5.50 slots; 0.20 are there.\n" },
		{ SITUATION_SYNCING,
		    "    Leaving: this attempt is over, and its marks are "
		    "being "
		    "synced. Next: the message leaves the active queue.\n" },
		{ SITUATION_REPORTING,
		    "    Leaving: this attempt is over, and its failures are "
		    "being reported to the sender. Next: the message leaves "
		    "the active queue.\n" },
		{ SITUATION_SUSPECT,
		    "    Suspect: 550 delivery agents died while they had the "
		    "message. Next: it is delivered while no other suspect is "
		    "(now 0AB).\n" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_str_eq(
		    sentence(full(rows[i].situation)), rows[i].want);
}

Test(sentence, later_by_what_is_dead_then)
{
	static const char *const want[] = {
		[SENTENCE_DEAD_NONE] =
		    "; then all remaining recipients are tried.\n",
		[SENTENCE_DEAD_SOME] =
		    "; recipients whose destination is still dead then are "
		    "deferred again without an attempt, all others are "
		    "tried.\n",
		[SENTENCE_DEAD_ALL] =
		    "; if its destination is still dead then, the message is "
		    "deferred again without an attempt. qctl retry opens the "
		    "destination and tries the message now.\n",
	};
	const struct msg_EXPLAINED f = full(SITUATION_LATER);
	struct buf out = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(want); i++) {
		buf_reset(&out);
		sentence_add_later(&out, &f, (enum sentence_dead)i, NOW);
		cr_assert_eq(out.error, 0);
		cr_expect_not_null(strstr(buf_str(&out),
		    "    Next: the message is due Tue, 14 Nov 2023 22:19:20 "
		    "+0000 (in 5m); "));
		cr_expect_not_null(
		    strstr(buf_str(&out), want[i]), "%s", buf_str(&out));
	}
	buf_done(&out);
}

Test(sentence, times_that_are_none)
{
	struct msg_EXPLAINED f = full(SITUATION_DEAD);

	f.since_wall = 0;
	f.until_wall = NOW - 1;
	cr_expect_not_null(strstr(sentence(f), "since some time, until now: "));
	f = full(SITUATION_DELIVERING);
	f.pid = 0;
	f.since_wall = NOW + USEC_PER_SEC;
	cr_expect_not_null(
	    strstr(sentence(f), "delivered for 0s: 1 recipient"));
}
