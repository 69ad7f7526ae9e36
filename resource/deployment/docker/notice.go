package docker

// Notice says that something has happened on a machine.
type Notice struct {
	MachineID string
	// Service is the name of the service to whose containers it has happened. Empty is everything: the machine has come, gone or
	// changed its labels, its volumes or images have changed, or events may have been missed.
	Service string
}

// Subscribe calls a function with what happens from now on, until the function that it returns is called; a call that is under way
// may end after that. It is called by one goroutine of each machine, at the same time for several machines, and holds up the
// machine's events: it must not block, and not call the client. What this client did is noticed like everything else.
func (c *Client) Subscribe(f func(Notice)) (unsubscribe func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextSubscriber
	c.nextSubscriber++
	c.subscribers[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.subscribers, id)
	}
}

func (c *Client) notify(n Notice) {
	c.mu.RLock()
	subscribers := make([]func(Notice), 0, len(c.subscribers))
	for _, f := range c.subscribers {
		subscribers = append(subscribers, f)
	}
	c.mu.RUnlock()
	for _, f := range subscribers {
		f(n)
	}
}
