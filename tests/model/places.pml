/* The lock of a set, places, waiters, deaths and wake-ups of common/site, in
 * every interleaving. One site; queues that each have MAIL deliveries to make,
 * and are killed anywhere, DEATHS times in all.
 *
 *	asserted  never more places really held than WINDOW; who has the lock
 *	          finds a slot in use if a cell of it is not 0
 *	end       nobody waits for ever: all mail is delivered
 *
 * DIRECT   a wake-up sets the eventfd, without the word and the thread
 * NET      who waits looks by itself when nothing else happens (timeout)
 * BROKEN_ORDER, BROKEN_MEND, BROKEN_DONE, BROKEN_FORGET, BROKEN_SLEEP
 *          what must not be done: each has to be refuted, or what is verified
 *          without them says nothing
 *
 * docs/SITES.md. tests/model/run.sh has the runs.
 */
#define NOBODY 255

byte owner = NOBODY;		/* of the lock */
bool owner_died;		/* EOWNERDEAD */
bool in_use;
byte busy[QUEUES];
byte ticket[QUEUES];		/* 0: does not wait; the least is first */
bool granted[QUEUES];		/* it has a grant */

bool bits[QUEUES];		/* look at the site */
bool word[QUEUES];		/* the futex */
bool asleep[QUEUES];		/* the thread, on it */
bool event[QUEUES];		/* the eventfd */

byte real[QUEUES];		/* places, as the world has them */
byte sent[QUEUES];
bool kill_it[QUEUES], dead[QUEUES];
byte deaths;

inline sum_cells(ret) {
	ret = 0; i = 0;
	do
	:: i < QUEUES -> ret = ret + busy[i]; i++
	:: else -> break
	od
}

/* Waiters before it; all, if it does not wait itself. */
inline count_before(me, ret) {
	ret = 0; i = 0;
	do
	:: i < QUEUES ->
		if
		:: ticket[i] != 0 && i != me &&
		    (ticket[me] == 0 || ticket[i] < ticket[me]) -> ret++
		:: else
		fi;
		i++
	:: else -> break
	od
}

inline note_use() {
	in_use = false; i = 0;
	do
	:: i < QUEUES ->
		if
		:: busy[i] != 0 || ticket[i] != 0 -> in_use = true
		:: else
		fi;
		i++
	:: else -> break
	od
}

/* Tickets stay small: the order is what counts. */
inline stop_waiting(me) {
	if
	:: ticket[me] != 0 ->
		i = 0;
		do
		:: i < QUEUES ->
			if
			:: ticket[i] > ticket[me] -> ticket[i] = ticket[i] - 1
			:: else
			fi;
			i++
		:: else -> break
		od;
		ticket[me] = 0
	:: else
	fi;
	granted[me] = false
}

inline start_waiting(me) {
	if
	:: ticket[me] == 0 ->
		ticket[me] = 1; i = 0;
		do
		:: i < QUEUES ->
			if
			:: i != me && ticket[i] >= ticket[me] ->
				ticket[me] = ticket[i] + 1
			:: else
			fi;
			i++
		:: else -> break
		od
	:: else
	fi
}

/* Waiters that get a grant are to be woken. */
inline grant(me) {
	j = 0;
	do
	:: j < QUEUES ->
		if
		:: ticket[j] != 0 ->
			sum_cells(held);
			count_before(j, before);
			if
			:: held + before >= WINDOW -> granted[j] = false
			:: else ->
				if
				:: !granted[j] -> granted[j] = true; woken[j] = (j != me)
				:: else
				fi
			fi
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0
}

inline lock(me) {
	atomic { owner == NOBODY -> owner = me };
	if
	:: owner_died ->
#ifndef BROKEN_MEND
		d_step { note_use(); i = 0 };
#endif
		owner_died = false
	:: else
	fi;
	d_step {
		sum_cells(held);
		assert(held == 0 || in_use);
		held = 0; i = 0
	}
}

inline unlock() {
	owner = NOBODY
}

/* Behind the lock: who dies in here has told some and not others. */
inline wake() {
	j = 0;
	do
	:: j < QUEUES ->
		if
		:: woken[j] ->
			bits[j] = true;
#ifdef DIRECT
			event[j] = true;
#else
			word[j] = true;
			asleep[j] = false;
#endif
			woken[j] = false
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0
}

inline nothing_left() {
	i = 0; j = 0; held = 0; before = 0; room = false; was = false; k = 0;
	do
	:: k < QUEUES -> woken[k] = false; k++
	:: else -> break
	od;
	k = 0
}

inline sum_real(ret) {
	ret = 0; i = 0;
	do
	:: i < QUEUES -> ret = ret + real[i]; i++
	:: else -> break
	od;
	i = 0
}

/* A queue-send. */
proctype queue(byte me)
{
	byte i, j, k, held, before;
	bool room, was;
	bool woken[QUEUES];

	{
		do
		:: sent[me] == MAIL -> break
		:: sent[me] < MAIL ->
			lock(me);
			d_step {
				grant(me);
				sum_cells(held);
				count_before(me, before);
				room = held + before < WINDOW;
				held = 0; before = 0; i = 0
			};
			if
			:: room ->
				/* take */
#ifdef BROKEN_ORDER
				busy[me]++;
				in_use = true;
#else
				in_use = true;
				busy[me]++;
#endif
				d_step { stop_waiting(me); grant(me); i = 0;
				    held = 0; before = 0; room = false };
				unlock();
				wake();
				/* the connection */
				atomic {
					real[me]++;
					sum_real(held);
					assert(held <= WINDOW);
					held = 0
				};
				/* done */
#ifndef BROKEN_DONE
				real[me]--;
#endif
				lock(me);
				busy[me]--;
				d_step { grant(me); note_use(); i = 0;
				    held = 0; before = 0 };
				unlock();
				wake();
#ifdef BROKEN_DONE
				real[me]--;
#endif
				sent[me]++
			:: else ->
				/* wait */
				in_use = true;
				d_step { start_waiting(me); grant(me); i = 0;
				    held = 0; before = 0 };
				unlock();
				wake();
				do
				:: event[me] ->
					event[me] = false;
					if
					:: bits[me] -> bits[me] = false; break
					:: else
					fi
#ifdef NET
				:: timeout -> break
#endif
				od
			fi
		od;
		/* A clean end: its member is given up. */
		lock(me);
		d_step { stop_waiting(me); grant(me); note_use(); i = 0;
		    held = 0; before = 0 };
		unlock();
		wake()
	} unless {
		kill_it[me] ->
		atomic {
			nothing_left();
			if
			:: owner == me -> owner = NOBODY; owner_died = true
			:: else
			fi;
			kill_it[me] = false;
			dead[me] = true
		}
	}
}

/* The thread that sleeps on the word. */
proctype thread(byte me)
{
	bool was;

	do
	:: d_step { was = word[me]; word[me] = false };
		if
		:: was -> event[me] = true; was = false
		:: else ->
#ifdef BROKEN_SLEEP
			asleep[me] = true;
#else
			/* FUTEX_WAIT looks and sleeps in one. */
			atomic {
				if
				:: !word[me] -> asleep[me] = true
				:: else
				fi
			};
#endif
end:			!asleep[me]
		fi
	od
}

/* Kills; when the whole group is gone, some other queue forgets its member,
 * and it is started again. */
proctype supervisor()
{
	byte i, j, k, held, before, victim;
	bool room, was;
	bool woken[QUEUES];

end:	do
	:: deaths < DEATHS ->
		deaths++;
		if
		:: victim = 0
		:: QUEUES > 1 -> victim = 1
		fi;
		if
		:: sent[victim] < MAIL && !dead[victim] -> kill_it[victim] = true;
			if
			:: dead[victim]
			:: sent[victim] == MAIL -> kill_it[victim] = false;
				goto end
			fi
		:: else -> goto end
		fi;
#ifndef BROKEN_FORGET
		real[victim] = 0;
#endif
		lock(QUEUES);
		busy[victim] = 0;
		d_step { stop_waiting(victim); grant(QUEUES); note_use(); i = 0;
		    held = 0; before = 0 };
		unlock();
		wake();
#ifdef BROKEN_FORGET
		real[victim] = 0;
#endif
		dead[victim] = false;
		run queue(victim);
		victim = 0
	od
}

init {
	byte n = 0;

	atomic {
		do
		:: n < QUEUES ->
#ifndef DIRECT
			run thread(n);
#endif
			run queue(n); n++
		:: else -> break
		od;
		run supervisor()
	}
}
