/* queue-send/finish.h - a message leaves the active queue: by what becomes of
 * it (enum message_fate), its file is removed or goes to deferred/, hold/ or
 * corrupt/. docs/QUEUE.md has the table. */
#ifndef QUEUE_SEND_FINISH_H
#define QUEUE_SEND_FINISH_H

#include "queue-send/send.h"

usec_t finish_work(struct send *s);

#endif
