package natsserver

// SpawnServer starts a server as a process and returns its URL, without anything that ends it.
func SpawnServer(dir string) (url string, err error) {
	port, err := own.free()
	if err != nil {
		return "", err
	}
	p := &Process{dir: dir, port: port}
	return p.URL(), p.spawn()
}

// FreePort returns a free port of this process.
func FreePort() (int, error) { return own.free() }

// FreePortOfAnother returns a free port as another process finds it, which gives up its claim at once.
func FreePortOfAnother() (int, error) {
	var other ports
	port, err := other.free()
	if other.claim != nil {
		_ = other.claim.Close()
	}
	return port, err
}
