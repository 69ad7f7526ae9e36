package docker

import "sync"

// waiters are those who wait for something to happen to a container.
type waiters struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]bool
}

// add returns a channel that gets something when something may have happened, and what ends that.
func (w *waiters) add(containerID string) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[string]map[chan struct{}]bool{}
	}
	if w.waiting[containerID] == nil {
		w.waiting[containerID] = map[chan struct{}]bool{}
	}
	c := make(chan struct{}, 1)
	w.waiting[containerID][c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting[containerID], c)
		if len(w.waiting[containerID]) == 0 {
			delete(w.waiting, containerID)
		}
	}
}

func (w *waiters) wake(containerID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake(w.waiting[containerID])
}

func (w *waiters) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, waiting := range w.waiting {
		wake(waiting)
	}
}

func wake(waiting map[chan struct{}]bool) {
	for c := range waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
