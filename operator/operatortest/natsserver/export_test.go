package natsserver

// SpawnServer starts a server as a process and returns its URL, without anything that ends it.
func SpawnServer(dir string) (url string, err error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	p := &Process{dir: dir, port: port}
	return p.URL(), p.spawn()
}
