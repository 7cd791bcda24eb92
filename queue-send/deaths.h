/* queue-send/deaths.h - an agent is gone: its deliveries are deferred for a
 * short time, and nothing of that is held against the destination. Its messages
 * are counted, so that one that agents die of is found (retry.h, P15, C7): the
 * attempt of a suspect ends there (FATE_SUSPECT), one that is to blame leaves
 * as FATE_POISON with its reasons in bounce/. */
#ifndef QUEUE_SEND_DEATHS_H
#define QUEUE_SEND_DEATHS_H

#include "queue-send/send.h"

void deaths_of_agent(struct send *s, struct agent_link *agent);

#endif
