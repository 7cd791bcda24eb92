/* ipc/page_text.h - the page of the supervisor as text for people: one wording
 * for all commands. A page is foreign: its texts are cleaned. Each function
 * appends to out, or appends nothing when there is nothing to report; -ENOMEM.
 */
#ifndef IPC_PAGE_TEXT_H
#define IPC_PAGE_TEXT_H

#include "base/buf.h"
#include "ipc/page.h"

/* Why there is no page of the supervisor: none runs, or any user has filled
 * /dev/shm, so that it can publish none. */
#define PAGE_ABSENT_SIZE 320
const char *page_absent_text(char text[PAGE_ABSENT_SIZE]);
/* queue_state_name(), but "full" or "read-only" for an open queue whose file
 * system takes no new mail. */
const char *page_state_text(const struct sched_row *row);
/* The text after the state of a queue: "by hand for 2h: new disk", "tried again
 * in 5s: signal 11", "hands its mail over: idle"; of an open one "a process
 * hangs: …", "no new mail: mail system full: …" or nothing. */
int
page_text_row(const struct sched_row *row, usec_t now_mono, struct buf *out);
/* Of an enum disk_work, also an unknown one: "a move waits". */
const char *page_text_kind(uint32_t work);
/* "a move has waited for the disk for", before a time. */
const char *page_text_work(uint32_t work);
/* "load 45 % by hand for 52s". */
int
page_text_load(const struct sched_row *row, usec_t now_mono, struct buf *out);
/* "4 queues wanted by hand for 2m". */
int page_text_count(
    const struct sched_page *page, usec_t now_mono, struct buf *out);
/* "old configuration in force: FILE:LINE: reason". */
int page_text_conf(const struct sched_page *page, struct buf *out);
/* "last change 5m ago: queue 6 added …". */
int page_text_change(
    const struct sched_page *page, usec_t now_wall, struct buf *out);
/* Has an operator set the load of the row, and does it hold? */
bool page_is_load_manual(const struct sched_row *row, usec_t now_mono);
/* The time until then, 0 when it is past. */
usec_t page_time_left(usec_t until, usec_t now);

#endif
