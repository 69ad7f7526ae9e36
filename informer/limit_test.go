package informer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

const partLabel = "test.operatorkit.io/part"

// parted is a source of ConfigMaps that is limited to some of a few namespaces of the shared API server.
type parted struct {
	*follower
	client     client.WithWatch
	namespaces []string
}

// newParted makes the namespaces, with an object in each, and the source, which is limited to none of them and does not run yet.
func newParted(t *testing.T, instance *operatortest.Instance, namespaces int, change func(*informer.KubernetesConfig)) (*parted, informer.KubernetesConfig) {
	t.Helper()
	p := &parted{client: operatortest.NewClient(t, instance.RESTConfig(), nil)}
	for range namespaces {
		p.namespaces = append(p.namespaces, instance.Namespace(t))
	}
	config := configMapConfig(t, p.client)
	config.LabelSelector = labels.SelectorFromSet(labels.Set{partLabel: p.namespaces[0]})
	if change != nil {
		change(&config)
	}
	for _, namespace := range p.namespaces {
		p.write(t, namespace, "object", "first")
	}
	return p, config
}

// write makes or changes an object.
func (p *parted) write(t *testing.T, namespace, name, value string) {
	t.Helper()
	object := &corev1.ConfigMap{}
	object.Namespace, object.Name, object.Data = namespace, name, map[string]string{"value": value}
	object.Labels = map[string]string{partLabel: p.namespaces[0]}
	err := p.client.Create(t.Context(), object)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = p.client.Update(t.Context(), object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// partOf accepts objects of these namespaces.
func partOf(namespaces ...string) func(informer.Key) bool {
	return func(key informer.Key) bool { return slices.Contains(namespaces, key.Namespace) }
}

// limit limits the source, and waits until it has listed that.
func (p *parted) limit(grows bool, namespaces ...string) {
	p.t.Helper()
	listed := make(chan struct{})
	p.Limit(partOf(namespaces...), grows, func() { close(listed) })
	operatortest.Eventually(p.t, "the part is listed", func() bool {
		select {
		case <-listed:
			return true
		default:
			return false
		}
	})
}

// holds fails the test unless the source holds exactly these objects.
func (p *parted) holds(want ...string) {
	p.t.Helper()
	var got []string
	for _, key := range p.Keys() {
		got = append(got, key.String())
	}
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		p.t.Errorf("the source holds %q, want %q", got, want)
	}
}

// told returns what was told since the last call, without what is left out of it.
func (p *parted) told() (events []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		text := fmt.Sprintf("%s %s", e.Type, e.Key)
		if e.Backlog {
			text += " backlog"
		}
		events = append(events, text)
	}
	p.events = nil
	return events
}

func (p *parted) tells(want ...string) {
	p.t.Helper()
	var got []string
	operatortest.Eventually(p.t, fmt.Sprintf("%q is told", want), func() error {
		if got = append(got, p.told()...); len(got) < len(want) {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		p.t.Errorf("told is %q, want %q", got, want)
	}
}

func TestASourceHoldsThePartThatItIsLimitedTo(t *testing.T) {
	p, config := newParted(t, operatortest.Start(t), 3, nil)
	a, b := p.namespaces[0], p.namespaces[1]
	source, err := informer.NewKubernetes(config)
	if err != nil {
		t.Fatal(err)
	}
	source.Limit(partOf(), false, func() {})
	p.follower = followSource(t, source)
	p.holds()

	p.limit(true, a)
	p.tells("added " + a + "/object backlog")
	p.limit(true, a, b)
	p.tells("added " + b + "/object backlog")
	p.holds(a+"/object", b+"/object")
	p.write(t, a, "object", "second")
	p.tells("updated " + a + "/object")

	// What is given up is forgotten without a word, and what happens there is not told.
	p.limit(false, b)
	p.holds(b + "/object")
	if _, exists, err := p.Get(informer.Key{Namespace: a, Name: "object"}); exists || !errors.Is(err, informer.ErrElsewhere) {
		t.Errorf("exists: %t, error %v; want ErrElsewhere", exists, err)
	}
	if _, exists, err := p.Get(informer.Key{Namespace: b, Name: "other"}); exists || err != nil {
		t.Errorf("an object of the part that is not there: %t, %v", exists, err)
	}
	p.write(t, a, "object", "third")
	p.write(t, b, "object", "second")
	p.tells("updated " + b + "/object")
	for namespace, want := range map[string]bool{a: false, b: true, "": false} {
		if p.Holds(namespace) != want {
			t.Errorf("the source holds namespace %q: %t", namespace, !want)
		}
	}

	// What comes back is listed anew, also with what was deleted meanwhile.
	object := &corev1.ConfigMap{}
	object.Namespace, object.Name = a, "object"
	if err := p.client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	p.write(t, a, "new", "first")
	p.limit(true, b, a)
	p.tells("added " + a + "/new backlog")
	p.holds(a+"/new", b+"/object")

	behind, err := p.Behind(t.Context(), func(informer.Key) bool { return true })
	if err != nil || len(behind) > 0 {
		t.Errorf("it has yet to tell of %v, %v; want nothing, since others have the rest", behind, err)
	}
}

func TestWhatHappensWhileAPartChangesIsTold(t *testing.T) {
	p, config := newParted(t, operatortest.Start(t), 4, nil)
	source, err := informer.NewKubernetes(config)
	if err != nil {
		t.Fatal(err)
	}
	source.Limit(partOf(p.namespaces[0]), true, func() {})
	p.follower = followSource(t, source)
	p.told()

	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for _, namespace := range p.namespaces {
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				p.write(t, namespace, "object", fmt.Sprint(i))
			}
		})
	}
	// The first namespace stays all the time.
	for round := range 12 {
		part := []string{p.namespaces[0]}
		for i, namespace := range p.namespaces[1:] {
			if round>>i&1 == 0 {
				part = append(part, namespace)
			}
		}
		p.limit(true, part...)
		p.limit(false, part[0])
	}
	cancel()
	writing.Wait()
	p.limit(true, p.namespaces...)
	for _, namespace := range p.namespaces {
		want := &corev1.ConfigMap{}
		key := informer.Key{Namespace: namespace, Name: "object"}
		if err := p.client.Get(t.Context(), key, want); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "the source has the newest state", func() error {
			got, exists, err := p.Get(key)
			if err != nil || !exists || got.(*corev1.ConfigMap).ResourceVersion != want.ResourceVersion {
				return fmt.Errorf("%v, %w", got, err)
			}
			return nil
		})
	}
	versions := map[string]string{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Key.Namespace != p.namespaces[0] {
			continue
		}
		version := e.Object.(*corev1.ConfigMap).ResourceVersion
		if e.Type != informer.Updated || e.Backlog || versions[version] != "" {
			t.Errorf("%s %s in version %s is told, backlog %t, before as %q", e.Type, e.Key, version, e.Backlog, versions[version])
		}
		versions[version] = e.Type.String()
	}
	if len(versions) == 0 {
		t.Error("nothing is told of what has changed in the namespace that stays")
	}
}

func TestASourceIsMadeWholeByAReader(t *testing.T) {
	p, config := newParted(t, operatortest.Start(t), 2, nil)
	source, err := informer.NewKubernetes(config)
	if err != nil {
		t.Fatal(err)
	}
	source.Limit(partOf(p.namespaces[0]), true, func() {})
	p.follower = followSource(t, source)
	p.holds(p.namespaces[0] + "/object")
	reader := informer.NewReader(p.client.Scheme(), source)
	operatortest.Eventually(t, "the reader finds everything", func() error {
		list := &corev1.ConfigMapList{}
		if err := reader.List(t.Context(), list); err != nil || len(list.Items) < 2 {
			return fmt.Errorf("%d objects, %w", len(list.Items), err)
		}
		return nil
	})
	p.limit(false, p.namespaces[1])
	p.holds(p.namespaces[0]+"/object", p.namespaces[1]+"/object")
}
