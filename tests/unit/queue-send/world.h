/* A queue-send without its process: a scratch spool, real links, and the test
 * at their other ends as todo-proc and as deliver-local. System calls of the
 * spool can be made to fail. */
#ifndef TESTS_SEND_WORLD_H
#define TESTS_SEND_WORLD_H

#include "queue-send/control.h"
#include "queue-send/operators/operators.h"

#include <sys/resource.h>

#include "spool/accept.h"
#include "spool/act.h"

enum world_call {
	CALL_NONE,
	CALL_OPEN, /* for writing, in active/ */
	CALL_PWRITE,
	CALL_RENAME,
	CALL_LINK,
	CALL_WRITE, /* of reasons */
	CALL_FSYNC,
	CALL_SYNCFS,
	CALL_UNLINK,
};

struct world {
	char dir[64];
	struct conf conf;
	struct send s;
	struct daemon daemon;  /* without a channel */
	struct daemon_ops ops; /* of a reload: control_ops at the start */
	int todo, agent;       /* our ends; -1 */
	struct chan_frame from_todo, from_agent;
	uint64_t credit; /* that todo-proc was given */
	uint64_t prepared[256];
	uint32_t nprepared, scans;
	bool unnamed;        /* offers do not name destinations */
	bool tells;          /* offers tell what is in the file */
	bool passes;         /* and the file goes along, open */
	uint32_t hops;       /* of offers: Received fields */
	bool in_memory;      /* the spool; set before world_start() */
	const char *sender;  /* of files; NULL: s@here.test */
	const char *said;    /* the text of results; NULL: short */
	const char *content; /* of files; NULL: a short one */
	uid_t uid;           /* of the submitter of files; 0: getuid() */
	uint8_t notify;      /* of their recipients, enum dsn_notify */
	const char *orcpt;   /* of their recipients; NULL: none */
	struct dsn_mail dsn; /* of files */
	/* Set before world_start(). */
	unsigned threads[DISK_NKINDS]; /* 0: the loop does the work */
	bool one_a_thread;             /* each task wakes a thread */
	bool gated;          /* world_run() waits for none of these two */
	bool slow;           /* the disk was slow a moment ago */
	bool no_segment;     /* set before world_start() */
	int segment;         /* the table of destinations; -1 */
	uint64_t closes[16]; /* the agent was told to; nclosed */
	struct msg_CANCEL cancelled; /* the last one */
	uint32_t ncloses;
	struct world_wishes {    /* the last that the agent was told */
		uint64_t number; /* of the delivery; 0: none */
		uint8_t ret;
		uint32_t notify; /* of the first recipient, */
		char envid[DSN_ENVID_MAX + 1], orcpt[DSN_ORCPT_MAX + 1];
	} wishes;
	uint64_t placed; /* the job of the last SITE */
	char site[256];
};

/* conf: lines of a configuration file, "" for the defaults. Everything is
 * delivered to `discard`, but for @smtp.test and @pipe.test. */
void world_start(struct world *w, const char *conf);
void world_end(struct world *w);
/* Another queue-send on the same spool, after the death of the last. */
void world_again(struct world *w);
/* The same, with a thread for records and one for fetches of a slow disk. */
void world_use_threads(struct world *w);
/* Other lines in the configuration file, and a reload. */
void world_reload(struct world *w, const char *conf);
/* The same, while a thread reads, until the second. */
void world_reload_begin(struct world *w, const char *conf);
void world_reload_end(struct world *w);
/* Write its files and read them, at the start. */
void world_read_conf(struct world *w, const char *conf);
/* Nothing is logged. */
void world_be_silent(void);
void world_link_todo(struct world *w);
void world_link_agent(struct world *w);
/* deliver-smtp; our end takes the place of that of deliver-local. */
void world_link_smtp(struct world *w);
/* Let it work until it waits; takes in what it says to todo-proc. */
void world_run(struct world *w);

/* The nth call of the spool from now on that changes names or files, and all
 * after it, do nothing: as a death there. */
void world_cut(unsigned nth);
bool world_was_cut(void);
/* The seam of all spools here, as the three calls above and below make it. */
extern struct spool_sys world_sys;
void world_sys_init(void);
/* The calls since the last time this was asked for: p a mark, a a reason, f
 * fsync, s syncfs, r rename, u unlink. */
const char *world_trace(void);
/* Files of messages that were opened since it was asked last. */
unsigned world_opens(void);
/* From now on the call fails with errno, `times` times (0: for ever). */
void world_fail(enum world_call call, int error, int times);
/* What a disk can refuse while a report is made. */
#define WORLD_REFUSALS 5
extern const struct world_refusal {
	const char *name;
	enum world_call call;
	int error;
} world_refusals[WORLD_REFUSALS];

/* A file in incoming/ with n recipients: "r0@d0.test" and so on; of a format
 * that begins with @, r0 and so on there; of another one with @, all that one.
 * Its age in seconds. */
uint64_t
world_file(struct world *w, const char *format, uint32_t n, int64_t age_s);
/* What todo-proc would say of it. */
void world_offer(struct world *w, enum spool_dir dir, uint64_t inode);
/* The same with this descriptor, and with another inode if that is not 0. */
void world_offer_with(struct world *w, uint64_t inode, int fd, uint64_t as);
/* An offer of another message that has the inode. */
void world_offer_stranger(struct world *w, uint64_t inode);
/* The next descriptor is above the limit: what that was. */
struct rlimit world_starve(void);
/* Both. */
uint64_t world_message(struct world *w, const char *format, uint32_t n);

/* The next frame that the agent got; false: none. content is good until the
 * next one; fd, -1 where the frame had the content, is for the caller. */
struct world_delivery {
	uint64_t number;
	uint32_t nrcpts, rcpt[AGENT_RCPTS_MAX];
	char first[ADDRESS_MAX + 1]; /* recipient */
	char id[QUEUE_ID_SIZE], nexthop[256], sender[ADDRESS_MAX + 1];
	struct msg_str content;
	bool may_keep;       /* REUSE came before it, */
	uint64_t connection; /* with this one */
	bool placed;         /* SITE came before it: world's site */
	int fd;
};
bool world_take(struct world *w, struct world_delivery *ret);
/* There is one, and its file is not needed. */
void world_take_one(struct world *w, struct world_delivery *ret);
void world_result(struct world *w, const struct world_delivery *delivery,
    uint32_t place, enum agent_outcome outcome);
void world_done(struct world *w, const struct world_delivery *delivery);
/* DONE of a site that could not be reached, of a session that was lost in the
 * middle, and of an agent in trouble. */
void world_site_failed(struct world *w, const struct world_delivery *delivery);
void world_site_doubted(struct world *w, const struct world_delivery *delivery);
void world_agent_failed(struct world *w, const struct world_delivery *delivery);
/* Take deliveries and end all with this outcome until there are none; their
 * number.
 */
uint32_t world_deliver(struct world *w, enum agent_outcome outcome);
void world_send(int sock, const struct msg *msg);
/* The end of an operator who has just connected. */
int world_operator(const struct world *w);

/* Where the file is: a directory, or SPOOL_NDIRS. */
enum spool_dir world_where(const struct world *w, uint64_t inode);
/* Its id, wherever it is. */
struct queue_id world_id(const struct world *w, uint64_t inode);
/* An act of an operator on it, and what follows: acts_do(). */
int world_act(
    struct world *w, enum spool_act act, uint64_t inode, uint32_t *ret_running);
/* The same, with a time of its own; with a note; to another queue.
 * ACT_UNDER_WAY: while the world is gated, the answer is not known yet. */
int world_do(struct world *w, enum spool_act act, const struct queue_id *id,
    usec_t due_wall, uint32_t *ret_running);
int world_hold(struct world *w, const struct queue_id *id,
    const struct hold_note *note, uint32_t *ret_running);
int world_spread(struct world *w, struct spread *spread,
    const struct queue_id *id, uint32_t to);
/* The answer to the last of these. */
int world_answered(uint32_t *ret_running);
/* The marks of all recipients: "..D". */
const char *
world_marks(const struct world *w, enum spool_dir dir, uint64_t inode);
/* The last reason of a recipient: "DSN TEXT", "" if none. */
const char *world_reason(
    const struct world *w, enum spool_dir dir, uint64_t inode, uint32_t index);
/* The content of the report in incoming/; "" without one, or with two. */
const char *world_report(const struct world *w);
/* Is there a report in incoming/ with this text? */
/* How often this text stands in all reports in incoming/. */
uint32_t world_count_reported(const struct world *w, const char *what);
bool world_has_report(const struct world *w, const char *what);
/* Settle what is prepared, as todo-proc does with each scan. */
void world_settle(struct world *w);
/* Offer the message again, if it waits in deferred/ or incoming/. */
void world_offer_again(struct world *w, uint64_t inode);
/* Take the files in incoming/ away: their number, and the last of them. */
uint32_t world_clear_incoming(struct world *w, uint64_t *ret_inode);
/* Nothing is left of any message, but in incoming/. */
void world_is_empty(const struct world *w);
/* Files in a directory. */
uint32_t world_count(const struct world *w, enum spool_dir dir);

#endif
