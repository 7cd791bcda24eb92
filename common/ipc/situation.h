/* ipc/situation.h - what a message, a part of it, or its whole queue waits for:
 * the numbers in EXPLAINED (docs/QCTL.md, "Why a message waits"), and the
 * fields that each of them has. The others are 0 and "".
 *
 * Numbers are for ever. A reader passes over those that it does not know.
 *
 *	recipients  that are meant
 *	used, limit "used of limit"
 *	ahead       what stands before it; more: and more than that
 *	need, have  slots, agents that died, deliveries: by the situation
 *	site        transport/destination
 *	other       the id of another message
 */
#ifndef IPC_SITUATION_H
#define IPC_SITUATION_H

enum situation {
	SITUATION_NONE,

	/* The whole queue; these come first. */
	SITUATION_READ_ONLY, /* why; until: the next probe */
	SITUATION_CLOSING,   /* used: messages that have gone, limit: left */
	SITUATION_STOPPING,
	SITUATION_DISABLED,    /* no new mail */
	SITUATION_NO_TABLE,    /* of destinations */
	SITUATION_NO_TODO,     /* todo-proc is not there */
	SITUATION_ACTIVE_FULL, /* used, limit: the active queue */

	/* A message that is not in the active queue. */
	SITUATION_LATER = 20, /* until */
	SITUATION_DUE,        /* used: that are being prepared, limit */
	SITUATION_PREPARED,   /* todo-proc has it */
	SITUATION_PARKED,     /* site, used, limit: of its share; ahead */
	SITUATION_SUSPECT,    /* need: agents that died; beside one of those */
	SITUATION_OFFERED,    /* ahead; used, limit: the active queue */
	SITUATION_UNKNOWN,    /* queue-send has not met it; ahead: incoming/ */
	SITUATION_ENTERING,   /* the file is on the way to active/ */

	/* A message of the active queue. */
	SITUATION_READING = 40, /* recipients: not read yet */
	SITUATION_UNREAD,       /* the same; memory has no room for them */
	SITUATION_RECORDING,    /* recipients: their marks cannot be written */
	SITUATION_SYNCING,
	SITUATION_REPORTING,
	SITUATION_LEAVING,
	SITUATION_STUCK,   /* until */
	SITUATION_DECIDED, /* why: "held" …; need: deliveries that run */
	SITUATION_MOVING,  /* the file is on the way out of active/ */

	/* Recipients of it. */
	SITUATION_DELIVERING = 60, /* site, since, pid, why: the agent */
	SITUATION_NO_AGENT,        /* site, why: the agent that is not there */
	SITUATION_PAUSED,          /* site: nothing starts; until */
	SITUATION_DEAD,            /* site, since, until, why */
	SITUATION_WINDOW,          /* site, used, limit, ahead */
	SITUATION_AGENTS,          /* site, used, limit, ahead */
	/* site; other, of which used of limit deliveries were begun; need,
	 * have: hundredths of slots; need 0: no smaller message may overtake */
	SITUATION_BEHIND,
	SITUATION_NEXT, /* site: as soon as the loop comes to it */
	/* site; used, limit: slots of those that have not greeted */
	SITUATION_UNGREETED,

	/* A recipient that is to be delivered; used, limit of its window. */
	SITUATION_OPEN = 80, /* site, used, limit */
	SITUATION_NO_ROUTE,  /* why */
	SITUATION_HOPELESS,  /* why: it will fail */
	SITUATION_UNPLACED,  /* site: of the next hop; MX records may have
			      * another */
};

#endif
