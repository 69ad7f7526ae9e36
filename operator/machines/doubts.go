package machines

import (
	"sync"

	"github.com/operatorkit/operatorkit/informer"
)

// doubts are the services that are being looked at, or were found to depend on machines that can't be seen. They are told of all that
// happens on machines: what their statuses say may be older than what they were found to depend on. It locks nothing else, because it
// is asked while somebody tells of a machine.
type doubts struct {
	mu sync.RWMutex
	of map[informer.Key]bool
}

// begin says that a service is looked at.
func (d *doubts) begin(service informer.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[informer.Key]bool{}
	}
	d.of[service] = true
}

// end says that a service depends on no machine that can't be seen, or is gone.
func (d *doubts) end(service informer.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, service)
}

// about tells whether a service is in doubt.
func (d *doubts) about(service informer.Key) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.of[service]
}
