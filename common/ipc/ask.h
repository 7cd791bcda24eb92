/* ipc/ask.h - the message queue /qscheduler: load reports and requests.
 *
 * A 16-byte record is a load report, as existing writers send it; anything
 * else is a frame of ipc/msg.h, link ASK. The supervisor answers a request in
 * its page (struct sched_answer), found by pid and nonce.
 */
#ifndef IPC_ASK_H
#define IPC_ASK_H

#include "ipc/bell.h"
#include "ipc/msg.h"

struct load_report {
	int32_t pid;
	uint32_t queue;
	uint64_t load_pct;
};
_Static_assert(sizeof(struct load_report) == 16, "16-byte load report");

/* queue-send: without blocking; -EAGAIN full. */
int load_report_send(const char *instance, const struct load_report *report);

/* setqload: send and wait for the answer at most `limit`. 0: answered,
 * *ret_code is 0 or -errno with the supervisor's words in text; -ETIMEDOUT:
 * nobody answered; -ENOENT, -EACCES: no such instance, no permission; -EAGAIN:
 * the message queue stayed full. */
int ask_request(const char *instance, const struct msg *request, uint32_t nonce,
    usec_t limit, int *ret_code, char text[64]);

/* supervisor: one record. 1 a report, 2 a request (points into data),
 * 0 nothing there, -EBADMSG (count it), -errno. */
struct ask {
	struct load_report report;
	struct msg msg;
	char data[8192];
};
int ask_take(mqd_t mq, struct ask *ret_ask);

#endif
