/* Play a dialogue against a server that is a string. */
#ifndef TEST_PLAY_H
#define TEST_PLAY_H

#include "deliver-smtp/dialog/dialog.h"

/* What was fed, and what came of it. Texts of reports are kept for a look at
 * them. */
struct play {
	struct dialog dialog;
	struct agent_rcpt rcpts[8];
	struct dialog_survey survey; /* what any survey finds */
	/* Said by us; "{content}" or "{converted}" where the message went,
	 * "{survey}" or "{header}" where it was looked through, "{measure}"
	 * where it was measured (42 octets), "{count}" before MAIL, "{tls}"
	 * where TLS began. */
	struct buf said;
	struct buf results; /* "S2.0.0 D4.4.2 F5.1.1 -", by recipient */
	bool insecure;      /* TLS fails, where it begins */
	uint64_t wire;      /* what any count before MAIL finds; 0: task.size */
	struct buf texts[8];
	struct verdict got[8];
	const char *end; /* "", "clear", "site", "site next", "doubted",
			  * "lockstep", "stale", "open" */
};

/* Script: what the server says, LF for CRLF; `|` waits until we have had our
 * turn; at its end the connection is lost, with "!"
 * it times out, with "#" we abandon it. */
void play(struct play *p, const struct dialog_task *task, const char *script);
/* The same in slices of `cut` octets, never waiting for more than there is. */
void play_cut(struct play *p, const struct dialog_task *task,
    const char *script, size_t cut);
/* The same task once more, after an end that is "open". */
void play_again(struct play *p, const char *script);
/* The beginning alone: what the script's last turn leads to is the test's. */
void
play_begin(struct play *p, const struct dialog_task *task, const char *script);
/* Results and end of one that is over. */
void play_end(struct play *p);
void play_done(struct play *p);

/* Recipients a@x, b@x, …, and what else is usual. */
struct dialog_task play_task(struct play *p, uint32_t nrcpts);
/* One recipient, this level of TLS and this password; a refusal of AUTH is
 * temporary (smtp_auth_soft_bounce). */
struct dialog_task play_auth_task(
    struct play *p, const struct credential *c, enum tls_level level);

#endif
