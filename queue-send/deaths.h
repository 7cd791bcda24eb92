/* queue-send/deaths.h - an agent is gone: its deliveries are deferred for a
 * short time, and nothing of that is held against the destination. Its messages
 * are counted, so that one that agents die of is found (retry.h, P15, C7): the
 * attempt of a suspect ends with -ECONNABORTED, one that is put aside leaves
 * with -EOWNERDEAD and its reasons in bounce/. */
#ifndef QUEUE_SEND_DEATHS_H
#define QUEUE_SEND_DEATHS_H

#include "queue-send/send.h"

void deaths_of_agent(struct send *s, struct agent_link *agent);

#endif
