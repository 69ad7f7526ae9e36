package inspector

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/framework"
)

// samplePeriod is the time between two samples, and sampleCount is how many are kept: five minutes.
const (
	samplePeriod = time.Second
	sampleCount  = 300
)

// statistics counts what a framework does. It is safe for concurrent use.
type statistics struct {
	framework *framework.Framework

	mu        sync.Mutex
	kind      string
	total     uint64
	failed    uint64
	resources map[string]*resourceOverview
	samples   []sample
	// sampledTotal and sampledFailed are the counts at the last sample.
	sampledTotal, sampledFailed uint64
}

// resourceOverview is how long a resource takes.
type resourceOverview struct {
	Name string `json:"name"`
	// Runs and Failed are how often it ran since the start, and failed.
	Runs   uint64 `json:"runs"`
	Failed uint64 `json:"failed"`
	// Mean is over all runs, which took total. Recent is over about the last twenty: each new one
	// counts a twentieth. Longest is the longest.
	Mean    time.Duration `json:"meanNanoseconds"`
	Recent  time.Duration `json:"recentNanoseconds"`
	Longest time.Duration `json:"longestNanoseconds"`
	total   time.Duration
}

// sample is the state of a framework at a moment.
type sample struct {
	// At is the moment.
	At time.Time `json:"at"`
	// Waiting is how many objects waited for a worker, and OldestWait how long the one that waited longest.
	Waiting    int           `json:"waiting"`
	OldestWait time.Duration `json:"oldestWaitNanoseconds"`
	// Reconciled and Failed are how many reconciliations ended, and ended with an error, since the sample before.
	Reconciled uint64 `json:"reconciled"`
	Failed     uint64 `json:"failed"`
}

func (s *statistics) add(r *framework.Record) {
	if r.Event == "" && r.Outcome == framework.Ignored {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	if r.Outcome == framework.Failed {
		s.failed++
	}
	if r.Object.Kind != "" {
		s.kind = r.Object.Kind
	}
	for i := range r.Resources {
		s.addResource(&r.Resources[i])
	}
}

func (s *statistics) addResource(of *framework.ResourceRecord) {
	if of.Duration == 0 && of.Skipped != "" {
		return
	}
	known := s.resources[of.Name]
	if known == nil {
		known = &resourceOverview{Name: of.Name, Recent: of.Duration}
		s.resources[of.Name] = known
	}
	known.Runs++
	if of.Error != "" {
		known.Failed++
	}
	known.total += of.Duration
	known.Mean = known.total / time.Duration(known.Runs)
	known.Longest = max(known.Longest, of.Duration)
	known.Recent += (of.Duration - known.Recent) / 20
}

// sample takes a sample.
func (s *statistics) sample(now time.Time) {
	status := s.framework.Status()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == sampleCount {
		s.samples = slices.Delete(s.samples, 0, 1)
	}
	s.samples = append(s.samples, sample{
		At: now, Waiting: status.Fresh + status.Backlog, OldestWait: status.OldestWait,
		Reconciled: s.total - s.sampledTotal, Failed: s.failed - s.sampledFailed,
	})
	s.sampledTotal, s.sampledFailed = s.total, s.failed
}

// overview returns what is known now.
func (s *statistics) overview(now time.Time) frameworkOverview {
	o := frameworkOverview{Name: s.framework.Name(), Status: s.framework.Status(), Shadows: s.framework.Shadows()}
	for i, source := range s.framework.Sources() {
		o.Sources = append(o.Sources, newSourceOverview(source.Name(), source.Status(), i == 0, now))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Kind, o.Reconciled, o.Failed, o.Samples = s.kind, s.total, s.failed, slices.Clone(s.samples)
	for _, r := range s.resources {
		o.Resources = append(o.Resources, *r)
	}
	slices.SortFunc(o.Resources, func(a, b resourceOverview) int {
		return cmp.Or(cmp.Compare(b.Recent, a.Recent), cmp.Compare(a.Name, b.Name))
	})
	return o
}

// kindOf returns the kind of the framework's objects, once one has been reconciled.
func (s *statistics) kindOf() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kind
}
