#include "ipc/mapping.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The signal handler reads this, so all fields are atomic: size is stored last
 * and cleared first. */
struct place {
	uintptr_t base;
	size_t size; /* 0: the row is free */
	int lost;
};
static struct place places[MAPPINGS_MAX];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static bool installed;

static struct place *
place_of(uintptr_t address)
{
	size_t i;

	for (i = 0; i < MAPPINGS_MAX; i++) {
		const size_t size =
		    __atomic_load_n(&places[i].size, __ATOMIC_ACQUIRE);

		if (size > 0 && address >= places[i].base &&
		    address - places[i].base < size)
			return &places[i];
	}
	return NULL;
}

/* ---- the handler: nothing here but system calls and atomic variables ---- */

static bool
put_zeros(struct place *p)
{
	void *base = (void *)p->base;

	return mmap(base, p->size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base;
}

/* The instruction runs again after the return: with memory at the address, or
 * with the earlier action of the signal. */
static void
on_sigbus(int sig, siginfo_t *info, void *context UNUSED)
{
	const int error = errno;
	struct place *p = NULL;

	if (info->si_code == BUS_ADRERR)
		p = place_of((uintptr_t)info->si_addr);
	if (p != NULL && put_zeros(p)) {
		__atomic_store_n(&p->lost, 1, __ATOMIC_RELEASE);
	} else {
		(void)sigaction(sig, &before, NULL);
		if (info->si_code <= 0) /* a sent signal does not come again */
			(void)raise(sig);
	}
	errno = error;
}

static int
install(void)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO | SA_RESTART };

	if (installed)
		return 0;
	sa.sa_sigaction = on_sigbus;
	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGBUS, &sa, &before) < 0)
		return -errno;
	installed = true;
	return 0;
}

/* ---- mappings ---- */

static int
note(void *base, size_t size)
{
	size_t i;

	for (i = 0; i < MAPPINGS_MAX && places[i].size > 0; i++)
		;
	if (i == MAPPINGS_MAX)
		return -ENFILE;
	places[i].base = (uintptr_t)base;
	places[i].lost = 0;
	__atomic_store_n(&places[i].size, size, __ATOMIC_RELEASE);
	return 0;
}

static int
map_and_note(int fd, size_t size, void **ret_base)
{
	void *base;
	int r = install();

	if (r < 0)
		return r;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	r = note(base, size);
	if (r < 0)
		munmap(base, size);
	else
		*ret_base = base;
	return r;
}

int
mapping_map(int fd, size_t size, void **ret_base)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (uint64_t)st.st_size < size || size == 0)
		return -EBADMSG;
	pthread_mutex_lock(&places_lock);
	r = map_and_note(fd, size, ret_base);
	pthread_mutex_unlock(&places_lock);
	return r;
}

void
mapping_unmap(void *base, size_t size)
{
	struct place *p;

	if (base == NULL)
		return;
	pthread_mutex_lock(&places_lock);
	p = place_of((uintptr_t)base);
	ASSERT(p != NULL && p->base == (uintptr_t)base && p->size == size);
	__atomic_store_n(&p->size, 0, __ATOMIC_RELEASE);
	munmap(base, size);
	pthread_mutex_unlock(&places_lock);
}

bool
mapping_is_lost(const void *base)
{
	const struct place *p = place_of((uintptr_t)base);

	return p != NULL && __atomic_load_n(&p->lost, __ATOMIC_ACQUIRE) != 0;
}
