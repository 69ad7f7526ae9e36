package statusresource

import (
	"maps"
	"regexp"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/internal/statusmap"
)

const (
	// MessagePeriod is the least time between two writes of which the later one changes only what an error says. The next retry after
	// it tells the newest error.
	MessagePeriod = time.Minute
	// NumberPeriod is the same for an error in which only numbers have changed, such as a count of retries.
	NumberPeriod = 10 * time.Minute
)

// messages knows when the statuses of objects were written, as far as that is not long ago. A write makes an event, and an event a
// reconciliation: an error with another text each time would keep an object busy for ever.
type messages struct {
	now func() time.Time

	mu   sync.Mutex
	last map[types.UID]time.Time
}

// wrote notes that a status was written.
func (m *messages) wrote(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	maps.DeleteFunc(m.last, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= NumberPeriod })
	if m.last == nil {
		m.last = map[types.UID]time.Time{}
	}
	m.last[uid] = now
}

// keep returns the conditions of an error with the messages that they have already, if the new ones have to wait.
func (m *messages) keep(uid types.UID, status map[string]any, set []metav1.Condition) []metav1.Condition {
	there, _ := statusmap.Conditions(status)
	period := NumberPeriod
	for i := range set {
		is := there[set[i].Type]
		if is == nil || is["status"] != string(set[i].Status) || is["reason"] != set[i].Reason || is["observedGeneration"] != set[i].ObservedGeneration {
			return set
		}
		if numbers.ReplaceAllString(text(is["message"]), "#") != numbers.ReplaceAllString(set[i].Message, "#") {
			period = MessagePeriod
		}
	}
	m.mu.Lock()
	at, known := m.last[uid]
	m.mu.Unlock()
	if !known || m.now().Sub(at) >= period {
		return set
	}
	for i := range set {
		set[i].Message = text(there[set[i].Type]["message"])
	}
	return set
}

// numbers are what differs between texts that say the same: counts, addresses, identifiers.
var numbers = regexp.MustCompile(`[0-9A-Fa-f]*[0-9][0-9A-Fa-f]*`)
