#include "alias_scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/address.h"
#include "base/domain.h"

void
alias_scratch_enter(void)
{
	char dir[] = "/tmp/qscheduler-alias-XXXXXX";

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
}

void
alias_scratch_leave(void)
{
	char cwd[256];

	unlink("a");
	cr_assert_not_null(getcwd(cwd, sizeof(cwd)));
	cr_assert_eq(rmdir(cwd), 0);
}

void
alias_scratch_write(const void *text, size_t len)
{
	FILE *f = fopen("a", "w");

	cr_assert_not_null(f);
	cr_assert_eq(fwrite(text, 1, len, f), len);
	cr_assert_eq(fclose(f), 0);
}

const struct alias *
scratch_find_address(const struct alias_table *table, const char *address)
{
	char domain[DOMAIN_FOLDED_MAX + 1];

	cr_assert_eq(domain_fold(address_domain(address), domain), 0);
	return alias_find_address(table, address, domain);
}

const struct alias *
scratch_find_domain(const struct alias_table *table, const char *address)
{
	char domain[DOMAIN_FOLDED_MAX + 1];

	cr_assert_eq(domain_fold(address_domain(address), domain), 0);
	return alias_find_domain(table, domain);
}
