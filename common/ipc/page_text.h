/* ipc/page_text.h - what the page of the supervisor says, in words for people:
 * one wording for all commands. A page is foreign: its texts are cleaned (A7).
 * Each appends to out, nothing when there is nothing to say; -ENOMEM.
 */
#ifndef IPC_PAGE_TEXT_H
#define IPC_PAGE_TEXT_H

#include "base/buf.h"
#include "ipc/page.h"

/* What goes behind its state: "by hand for 2h: new disk", "tried again in 5s:
 * signal 11", "hands its mail over: idle". */
int
page_text_row(const struct sched_row *row, usec_t now_mono, struct buf *out);
/* "load 45 % by hand for 52s". */
int
page_text_load(const struct sched_row *row, usec_t now_mono, struct buf *out);
/* "4 queues wanted by hand for 2m". */
int page_text_count(
    const struct sched_page *page, usec_t now_mono, struct buf *out);
/* "last change 5m ago: queue 6 added …". */
int page_text_change(
    const struct sched_page *page, usec_t now_wall, struct buf *out);
/* Is its load given by hand, and not over? */
bool page_is_load_manual(const struct sched_row *row, usec_t now_mono);
/* So much time, 0 when that is past. */
usec_t page_time_left(usec_t until, usec_t now);

#endif
