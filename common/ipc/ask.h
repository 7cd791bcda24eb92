/* ipc/ask.h - the message queue /qscheduler: load reports and requests.
 *
 * A 16-byte record is a load report, as existing writers send it; anything
 * else is a frame of ipc/msg.h, link ASK. The supervisor answers a request in
 * its page (struct sched_answer), found by pid and nonce. A new request is a
 * row of msg.def, and then one of qscheduler/supervisor/requests.c.
 */
#ifndef IPC_ASK_H
#define IPC_ASK_H

#include "ipc/bell.h"
#include "ipc/msg.h"
#include "ipc/page.h"

#define ASK_MESSAGE_SIZE 256 /* of a record of /qscheduler */
#define ASK_DEPTH        64  /* records that wait; no more answers are needed */

/* The limits of a request; commands refuse the same at once. */
#define ASK_LIMIT_MAX    1000000           /* of a ratio of SET_LOAD */
#define ASK_SECONDS_MAX  (365 * 24 * 3600) /* of any time */
#define ASK_LOAD_SECONDS 60                /* the time of a load, by default */
/* Checks a reason, which is shown in a page: at most 95 printable bytes. NULL,
 * or the complaint. */
const char *ask_judge_reason(const char *reason, size_t len);

struct load_report {
	int32_t pid;
	uint32_t queue;
	uint64_t load_pct;
};
_Static_assert(sizeof(struct load_report) == 16, "16-byte load report");

/* Without blocking; -EAGAIN full. On a descriptor from the supervisor, since
 * queue-send may not open the queue. */
int load_report_put(mqd_t mq, const struct load_report *report);

/* For commands: send, then read the page every 10 ms for the answer, at most
 * for `limit`. The request carries its own pid and nonce. 0: answered,
 * *ret_code is 0 or -errno with the text of the supervisor; -ETIMEDOUT: no
 * answer, and the request will not be done; -ENOENT, -EACCES: no such instance,
 * no permission; -EAGAIN: the message queue stayed full; -EMSGSIZE: longer than
 * its records. */
int ask_request(const char *instance, const struct msg *request, uint32_t nonce,
    usec_t limit, int *ret_code, char text[SCHED_ANSWER_SIZE]);
/* Supervisor: puts the answer to pid and nonce into the page, over the oldest
 * answer; between page_write_begin() and page_write_end(). */
void ask_answer(struct sched_page *page, uint32_t pid, uint32_t nonce, int code,
    const char *text);

/* Supervisor: takes one record. 1: a report; 2: a request of link ASK (points
 * into data); 0: none; -EBADMSG: taken, to be counted; -ETIME: taken, and void,
 * since its sender no longer waits; -errno. */
struct ask {
	struct load_report report;
	struct msg msg;
	char data[8192];
};
int ask_take(mqd_t mq, struct ask *ret_ask);

#endif
