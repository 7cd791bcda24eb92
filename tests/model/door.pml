/* The door, the pick-up, deaths, power cuts and inode numbers that are given
 * again, in every interleaving (docs/SPOOL.md, docs/DOOR.md). MAIL users submit
 * one message each, into a file system with INODES inodes; KILLS deaths of
 * doors and of todo-proc, CUTS power cuts.
 *
 *	asserted  at the end what was acknowledged is delivered, and without
 *	          power cuts nothing is delivered twice; no file is moved over
 *	          another
 *
 * BROKEN_NOTE   the pick-up copies, and notes the inode of the drop, which is
 *               its name, until the drop is removed
 * BROKEN_ORDER  a door syncs before the link
 * BROKEN_ACK    a door tells the user before the sync
 *               what must not be done: each has to be refuted
 */
#define NONE 255
#ifdef BROKEN_NOTE
#define FILES (2 * MAIL)	/* the copy of a message is MAIL higher */
#define NAMES INODES
#else
#define FILES MAIL
#define NAMES MAIL
#endif

byte inode[FILES] = NONE;
byte was[FILES];		/* inode, kept for when a cut brings a name back */
bool used[INODES];		/* by a name or an open file */
bool locked[FILES];		/* its writer is not done */
bool whole[FILES];		/* its content is there, now */
bool synced[FILES];		/* … and after a cut */

byte drop[NAMES] = NONE;	/* maildrop/: files by name */
byte incoming[INODES] = NONE;	/* incoming/: files by inode */
byte disk_drop[NAMES] = NONE;	/* the same as the journal has them */
byte disk_incoming[INODES] = NONE;
bool dirty;

bool acked[MAIL];
byte delivered[MAIL];
byte kills, cuts;
byte power;			/* counts cuts: who was before it is dead */

#define MESSAGE(f) ((f) % MAIL)

/* One of the names for which `is` holds; blocks while there is none. */
#define ONE_OF(n, count, is) \
	if \
	:: is(0) -> n = 0 \
	:: count > 1 && is(count - 1) -> n = count - 1 \
	:: count > 2 && is(1) -> n = 1 \
	fi
#define SETTLED(n) (drop[n] != NONE && !locked[drop[n]])
#define READY(n)   (incoming[n] != NONE && !locked[incoming[n]])
#define TO_COPY(n) (SETTLED(n) && whole[drop[n]] && \
    inode[MAIL + drop[n]] == NONE && (!used[0] || !used[INODES - 1] || \
    (INODES > 2 && !used[1])))

/* All names at once: a journal. */
inline commit() {
	d_step {
		k = 0;
		do
		:: k < NAMES -> disk_drop[k] = drop[k]; k++
		:: else -> break
		od;
		k = 0;
		do
		:: k < INODES -> disk_incoming[k] = incoming[k]; k++
		:: else -> break
		od;
		k = 0; dirty = false
	}
}

inline sync(x) {
	atomic { synced[x] = true; commit() }
}

inline take_inode(x) {
	atomic {
		if
		:: !used[0] -> inode[x] = 0
		:: INODES > 1 && !used[INODES - 1] -> inode[x] = INODES - 1
		:: INODES > 2 && !used[1] -> inode[x] = 1
		fi;
		was[x] = inode[x];
		used[inode[x]] = true;
		whole[x] = true;
		locked[x] = true
	}
}

/* The last name and the last descriptor of a file go. */
inline free_file(x) {
	used[inode[x]] = false; inode[x] = NONE; locked[x] = false
}

#ifdef BROKEN_NOTE
#define NAME(f) inode[f]
#else
#define NAME(f) f
#endif

/* Step by step; a death or a cut may come before each. */
#define STEP(s) \
	if \
	:: atomic { power == born -> s } \
	:: power != born -> goto dead \
	:: kills < KILLS -> kills++; goto dead \
	fi

proctype door(byte f) {
	byte k, born = power;

	take_inode(f);
#ifdef BROKEN_ORDER
	STEP(sync(f));
#endif
	STEP(atomic { drop[NAME(f)] = f; dirty = true });
#ifdef BROKEN_ACK
	STEP(acked[f] = true);
#endif
#ifndef BROKEN_ORDER
	STEP(sync(f));
#endif
	STEP(atomic { acked[f] = true; locked[f] = false });
	goto out;
dead:
	/* Of a cut the disk has told already. */
	atomic {
		if
		:: power == born && inode[f] != NONE ->
			locked[f] = false;
			if
			:: drop[NAME(f)] != f -> free_file(f)
			:: else
			fi
		:: else
		fi
	}
out:	skip
}

#ifndef BROKEN_NOTE

/* Looks at any drop that is settled, then moves it. */
proctype todo() {
	byte n, f, k;

begin:
end:	do
	:: atomic { ONE_OF(n, NAMES, SETTLED); f = drop[n] }
	   if
	   :: kills < KILLS -> kills++; goto begin
	   :: true
	   fi;
	   atomic {
		if
		:: drop[n] != f -> skip	/* ENOENT, after a cut */
		:: drop[n] == f && !whole[f] ->
			drop[n] = NONE; dirty = true; free_file(f)
		:: drop[n] == f && whole[f] ->
			assert(incoming[inode[f]] == NONE);
			drop[n] = NONE; incoming[inode[f]] = f; dirty = true
		fi;
		f = NONE
	   }
	   if
	   :: kills < KILLS -> kills++; goto begin
	   :: true
	   fi
	od
}

#else

byte note_drop = NONE, note_copy = NONE;

/* Copies, links, removes, each a step; the note tells of the first and last. */
proctype todo() {
	byte n, f, k;

begin:
	atomic {
		if
		:: note_copy != NONE && inode[note_copy] != NONE &&
		    incoming[inode[note_copy]] == note_copy ->
			if
			:: drop[note_drop] != NONE ->
				f = drop[note_drop];
				drop[note_drop] = NONE; dirty = true;
				free_file(f)
			:: else
			fi
		:: else
		fi;
		note_drop = NONE; note_copy = NONE
	}
end:	do
	:: atomic { ONE_OF(n, NAMES, TO_COPY); f = drop[n] }
	   take_inode(MAIL + f);
	   atomic { note_drop = n; note_copy = MAIL + f }
	   atomic { incoming[inode[MAIL + f]] = MAIL + f; dirty = true }
	   sync(MAIL + f);
	   locked[MAIL + f] = false;
	   atomic { drop[n] = NONE; dirty = true; free_file(f) }
	   if
	   :: kills < KILLS -> kills++; goto begin
	   :: true
	   fi;
	   atomic { note_drop = NONE; note_copy = NONE }
	od
}

#endif

/* Delivers what lies in incoming/, and gives its inode back. */
proctype send() {
	byte i, f;

end:	do
	:: atomic {
		ONE_OF(i, INODES, READY);
		f = incoming[i];
		if
		:: whole[f] -> delivered[MESSAGE(f)]++
		:: else
		fi;
		incoming[i] = NONE; dirty = true; free_file(f);
		f = 0; i = 0
	   }
	od
}

/* The journal is written when it pleases. */
proctype kernel() {
	byte k;

end:	do
	:: CUTS > cuts && dirty -> commit()
	od
}

/* Names are what the journal has, content what was synced; who was running is
 * dead. */
proctype cut() {
	byte k, f;

	do
	:: cuts < CUTS -> d_step {
		cuts++; power++;
		k = 0;
		do
		:: k < INODES -> used[k] = false; k++
		:: else -> break
		od;
		k = 0;
		do
		:: k < NAMES -> drop[k] = disk_drop[k]; k++
		:: else -> break
		od;
		k = 0;
		do
		:: k < INODES -> incoming[k] = disk_incoming[k];
			if
			:: incoming[k] != NONE ->
				used[k] = true; inode[incoming[k]] = k;
				whole[incoming[k]] = synced[incoming[k]]
			:: else
			fi;
			k++
		:: else -> break
		od;
		f = 0;
		do
		:: f < FILES -> locked[f] = false; f++
		:: else -> break
		od;
		k = 0;
		do
		:: k < NAMES ->
			if
			:: drop[k] != NONE ->
				inode[drop[k]] = was[drop[k]];
				used[was[drop[k]]] = true;
				whole[drop[k]] = synced[drop[k]]
			:: else
			fi;
			k++
		:: else -> break
		od;
		dirty = false; k = 0; f = 0
	   }
	:: else -> break
	od
}

init {
	byte m;

	atomic {
		run todo(); run send(); run kernel(); run cut();
		m = 0;
		do
		:: m < MAIL -> run door(m); m++
		:: else -> break
		od
	}
	timeout;
	m = 0;
	do
	:: m < MAIL ->
		assert(!acked[m] || delivered[m] > 0);
		assert(cuts > 0 || delivered[m] <= 1);
		m++
	:: else -> break
	od
}
