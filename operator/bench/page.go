package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// searches is how many searches are measured in a run, and ofBudget what the page takes of the memory that it may.
const (
	searches = 10
	ofBudget = "percent-of-budget"
)

// pageOfFailingObjects measures the page of an operator while many objects fail, each with an error of some length: how long a
// search takes that looks at all of them, and how much of its budget of memory the page takes.
func pageOfFailingObjects(ctx context.Context, e *environment) ([]line, error) {
	many, few := fmt.Sprintf("%d failing", e.failing), fmt.Sprintf("%d failing", e.failing/10)
	s, err := e.compare(ctx, "page",
		contender{many, searches, failingPage(e.failing)}, contender{few, searches, failingPage(e.failing / 10)})
	if err != nil {
		return nil, err
	}
	one := series{operatorKit: s[many]}
	search := reportLine(fmt.Sprintf("page, search among %d failing objects: time", e.failing), inMicroseconds, one, nanoseconds)
	search.Ratio = s.ratio(many, few, nanoseconds)
	memory := reportLine(fmt.Sprintf("page, %d failing objects: memory, of its budget", e.failing), inPercent, one, extra(ofBudget))
	return []line{search.atMost(float64(500 * time.Millisecond)), memory.atMost(110)}, nil
}

// failingPage searches among so many failing objects.
func failingPage(objects int) func(context.Context, *testing.B) error {
	return func(ctx context.Context, b *testing.B) error {
		before := heap()
		i, fill, err := failingInspector(objects)
		if err != nil {
			return err
		}
		b.ReportMetric(100*float64(heap()-before)/inspector.DefaultMemory, ofBudget)
		if err := fill(); err != nil {
			return err
		}
		server := httptest.NewServer(i)
		defer server.Close()
		b.StartTimer()
		defer b.StopTimer()
		for range searches {
			if err := search(ctx, server, failingSearch); err != nil {
				return err
			}
		}
		return nil
	}
}

// failingSearch finds objects by a word of their names and one of their errors, which are looked at for that.
const failingSearch = "q=lease+object-7"

// failingInspector remembers of so many objects that they fail. They exist when fill was called.
func failingInspector(objects int) (i *inspector.Inspector, fill func() error, err error) {
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, nil, err
	}
	if i, err = inspector.New(inspector.Config{Name: "bench", Logger: logger, Objects: objects}); err != nil {
		return nil, nil, err
	}
	source := informer.NewPush("primaries")
	f, err := newFramework(framework.Config{Source: source, Observer: i}, countingResource{newCountdown(1)})
	if err != nil {
		return nil, nil, err
	}
	i.Watch(f)
	for n := range objects {
		i.Observe(failedRecord(f.Name(), newPrimary("default", n).Name))
	}
	return i, func() error {
		for n := range objects {
			if err := source.Update(newPrimary("default", n)); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func search(ctx context.Context, server *httptest.Server, query string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+inspector.Path+"objects?"+query, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the page answers %s: %w", answer.Status, err)
	}
	return nil
}

// failedRecord is a reconciliation of an object that fails in its first resource.
func failedRecord(frameworkName, name string) *framework.Record {
	text := fmt.Sprintf("ensure created: Patch \"https://10.0.0.1/api/v1/namespaces/default/configmaps/%s\": %s", name, strings.Repeat("the lease of the server has ended; ", 12))
	return &framework.Record{
		Framework: frameworkName, Key: informer.Key{Namespace: "default", Name: name}, Event: plan.UpdateEvent, Started: time.Now(),
		Object: plan.Object{Kind: "ConfigMap", Namespace: "default", Name: name}, Outcome: framework.Failed,
		Triggers:  []framework.Trigger{{Cause: framework.CauseRetry}},
		Error:     fmt.Sprintf("update of ConfigMap default/%s: resource \"child\": %s", name, text),
		Resources: []framework.ResourceRecord{{Name: "child", Error: text, Duration: time.Millisecond}},
	}
}
