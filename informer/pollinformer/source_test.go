package pollinformer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
)

var _ informer.Source = (*pollinformer.Source[int])(nil)

type machine struct {
	Size  int
	Disks []string
	// UID tells lives apart, if it is set.
	UID types.UID
}

func (m machine) GetUID() types.UID { return m.UID }

func key(name string) informer.Key { return informer.Key{Name: name} }

// cloud is the listed system.
type cloud struct {
	mu       sync.Mutex
	machines map[informer.Key]machine
	fail     func(ctx context.Context) error
	lists    int
}

func (c *cloud) list(ctx context.Context) (map[informer.Key]machine, error) {
	c.mu.Lock()
	c.lists++
	machines, fail := maps.Clone(c.machines), c.fail
	c.mu.Unlock()
	if fail != nil {
		if err := fail(ctx); err != nil {
			return map[informer.Key]machine{}, err
		}
	}
	return machines, nil
}

// set changes or adds a machine.
func (c *cloud) set(name string, m machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines[key(name)] = m
}

func (c *cloud) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.machines, key(name))
}

// failWith has later lists fail, and returns how many there were so far.
func (c *cloud) failWith(fail func(ctx context.Context) error) (lists int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = fail
	return c.lists
}

// poll runs a source of the cloud in a synctest bubble. next lets one interval pass and returns the
// events since the last call.
func poll(t *testing.T, c *cloud, change func(*pollinformer.Config[machine])) (source *pollinformer.Source[machine], next func() []string) {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	config := pollinformer.Config[machine]{Name: "machines", List: c.list, Interval: time.Minute, Logger: logger}
	if change != nil {
		change(&config)
	}
	source, err = pollinformer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	source.Subscribe(func(e informer.Event) {
		text := fmt.Sprintf("%s %s %d", e.Type, e.Key.Name, e.Object.(machine).Size)
		if e.Backlog {
			text += " backlog"
		}
		events = append(events, text)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := source.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
	return source, func() []string {
		// The longest interval, after which the shortest has not passed twice.
		time.Sleep(66*time.Second + time.Millisecond)
		synctest.Wait()
		got := events
		events = nil
		slices.Sort(got)
		return got
	}
}

func TestOnlyChangesOfContentAreEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{machines: map[informer.Key]machine{
			key("a"): {Size: 1, Disks: []string{"d"}},
			key("b"): {Size: 2},
		}}
		source, next := poll(t, c, nil)
		if err := source.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"added a 1 backlog", "added b 2 backlog"}, next()); diff != "" {
			t.Errorf("first list (-want +got):\n%s", diff)
		}
		c.set("a", machine{Size: 1, Disks: []string{"d"}})
		if diff := cmp.Diff([]string(nil), next()); diff != "" {
			t.Errorf("same content (-want +got):\n%s", diff)
		}
		c.set("a", machine{Size: 1, Disks: []string{"e"}})
		c.remove("b")
		c.set("c", machine{Size: 3})
		if diff := cmp.Diff([]string{"added c 3", "deleted b 2", "updated a 1"}, next()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string(nil), next()); diff != "" {
			t.Errorf("nothing new (-want +got):\n%s", diff)
		}
	})
}

func TestFailedListIsStalenessAndNeverADeletion(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context) error{
		"error": func(context.Context) error { return errors.New("no answer") },
		"panic": func(context.Context) error { panic("no answer") },
		"timeout": func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("no answer: %w", ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cloud{machines: map[informer.Key]machine{key("a"): {Size: 1}}}
				source, next := poll(t, c, func(config *pollinformer.Config[machine]) { config.Timeout = time.Second })
				next()
				contact := source.Status().LastContact
				lists := c.failWith(fail)
				for range 3 {
					if got := next(); len(got) > 0 {
						t.Errorf("events of a failed list: %v", got)
					}
				}
				status := source.Status()
				if status.LastError == nil || !strings.Contains(status.LastError.Error(), "no answer") && !strings.Contains(status.LastError.Error(), "panic: value of type string in") {
					t.Errorf("LastError = %v", status.LastError)
				}
				if !status.Synced || status.Objects != 1 || status.LastContact.After(contact.Add(67*time.Second)) {
					t.Errorf("status = %+v, want synced, one object, contact about %s", status, contact)
				}
				if c.failWith(nil) <= lists {
					t.Error("the source has given up")
				}

				c.remove("a")
				got := append(next(), next()...)
				if diff := cmp.Diff([]string{"deleted a 1"}, got); diff != "" {
					t.Errorf("after the outage (-want +got):\n%s", diff)
				}
				if err := source.Status().LastError; err != nil {
					t.Errorf("LastError = %v after the outage", err)
				}
			})
		})
	}
}

func TestListThatOverrunsItsTimeIsAnErrorEvenWithAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{fail: func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}}
		source, next := poll(t, c, func(config *pollinformer.Config[machine]) { config.Timeout = time.Second })
		next()
		if s := source.Status(); s.Synced || !errors.Is(s.LastError, context.DeadlineExceeded) {
			t.Errorf("status = %+v, want not synced, deadline exceeded", s)
		}
	})
}

func TestOwnVersionAndCopyAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{machines: map[informer.Key]machine{key("a"): {Size: 1, Disks: []string{"d"}}}}
		source, next := poll(t, c, func(config *pollinformer.Config[machine]) {
			config.Version = func(m machine) (string, error) {
				if m.Size < 0 {
					return "", errors.New("negative size")
				}
				return fmt.Sprint(m.Size), nil
			}
			config.Copy = func(m machine) machine { return machine{Size: m.Size, Disks: slices.Clone(m.Disks)} }
		})
		next()
		c.set("a", machine{Size: 1, Disks: []string{"e"}})
		if got := next(); len(got) > 0 {
			t.Errorf("events without a new version: %v", got)
		}
		got, _, _ := source.Get(key("a"))
		got.(machine).Disks[0] = "spoiled"
		got, _, _ = source.Get(key("a"))
		if diff := cmp.Diff(any(machine{Size: 1, Disks: []string{"d"}}), got); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		c.set("b", machine{Size: -1})
		c.remove("a")
		if got := next(); len(got) > 0 {
			t.Errorf("events of a list with a value that has no version: %v", got)
		}
		if err := source.Status().LastError; err == nil || !strings.Contains(err.Error(), "negative size") {
			t.Errorf("LastError = %v", err)
		}
	})
}

func TestNewNamesEachFaultyField(t *testing.T) {
	_, err := pollinformer.New(pollinformer.Config[machine]{Interval: -1, Timeout: -1})
	if !errors.Is(err, informer.ErrInvalidConfig) {
		t.Fatalf("err = %v, want ErrInvalidConfig", err)
	}
	for _, field := range []string{"Name", "List", "Interval", "Timeout", "Logger"} {
		if !strings.Contains(err.Error(), field+" must") {
			t.Errorf("%s is missing in: %v", field, err)
		}
	}
}

func TestDefaultHashRefusesWhatJSONCanNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		source, err := pollinformer.New(pollinformer.Config[chan int]{
			Name: "channels",
			List: func(context.Context) (map[informer.Key]chan int, error) {
				return map[informer.Key]chan int{key("c"): nil}, nil
			},
			Logger: logger,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = source.Run(ctx)
		if err := source.Status().LastError; err == nil || !strings.Contains(err.Error(), "set Version") {
			t.Errorf("LastError = %v", err)
		}
	})
}

func TestR11AThingIsAskedForWhereItIs(t *testing.T) {
	c := &cloud{machines: map[informer.Key]machine{key("a"): {Size: 1}}}
	get := func(_ context.Context, key informer.Key) (machine, bool, error) {
		if key.Name == "broken" {
			panic("no answer")
		}
		return machine{Size: 2}, key.Name == "a", nil
	}
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		get  func(context.Context, informer.Key) (machine, bool, error)
		want string
	}{
		"by Get":  {get, "{2 [] } true <nil>"},
		"by List": {nil, "{1 [] } true <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := pollinformer.New(pollinformer.Config[machine]{Name: "machines", List: c.list, Get: test.get, Logger: logger})
			if err != nil {
				t.Fatal(err)
			}
			obj, exists, err := source.GetLive(t.Context(), key("a"))
			if got := fmt.Sprint(obj, exists, err); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			obj, exists, err = source.GetLive(t.Context(), key("b"))
			if got := fmt.Sprint(obj, exists, err); got != "<nil> false <nil>" {
				t.Errorf("got %s of what is not there", got)
			}
			if selected, err := source.SelectsLive(t.Context(), obj); !selected || err != nil {
				t.Errorf("selected %t, %v", selected, err)
			}
			if _, _, err := source.GetLive(t.Context(), key("broken")); (err != nil) != (test.get != nil) {
				t.Errorf("got %v of a function that panics", err)
			}
			c.failWith(func(context.Context) error { return errors.New("no answer") })
			defer c.failWith(nil)
			if _, _, err := source.GetLive(t.Context(), key("b")); (err != nil) != (test.get == nil) {
				t.Errorf("got %v of a list that fails", err)
			}
		})
	}
}

func TestCatchingUpListsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{machines: map[informer.Key]machine{key("a"): {Size: 1}}}
		source, next := poll(t, c, nil)
		next()
		c.remove("a")
		if _, err := source.Behind(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if _, exists, _ := source.Get(key("a")); exists {
			t.Error("it has not listed")
		}
		c.failWith(func(context.Context) error { return errors.New("no answer") })
		if _, err := source.Behind(t.Context(), nil); err == nil {
			t.Error("a list that failed is no error")
		}
	})
}
