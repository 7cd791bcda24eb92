/* Loaded into a process whose syncs are to do nothing. */
int fsync(int fd);
int syncfs(int fd);

int
fsync(int fd)
{
	return fd < 0 ? -1 : 0;
}

int
syncfs(int fd)
{
	return fd < 0 ? -1 : 0;
}
