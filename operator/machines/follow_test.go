package machines_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// follower is who watches a condition of a service.
type follower struct {
	*world
	service, condition string
	watch              watch.Interface
	ended              chan struct{}

	mu sync.Mutex
	// messages are those that it has had, one after the other, and at says when each came.
	messages []string
	at       []time.Time
	// last is the newest event.
	last watch.Event
	// versions are those of the service that were seen.
	versions map[string]bool
}

// follow watches a condition of a service from now on.
func (w *world) follow(service, condition string) *follower {
	w.t.Helper()
	watching, err := w.user.Watch(w.t.Context(), &v1alpha1.MachineServiceList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	f := &follower{world: w, service: service, condition: condition, watch: watching, ended: make(chan struct{}), versions: map[string]bool{}}
	go func() {
		defer close(f.ended)
		for e := range watching.ResultChan() {
			f.see(e)
		}
	}()
	return f
}

func (f *follower) see(e watch.Event) {
	s, ok := e.Object.(*v1alpha1.MachineService)
	if !ok || s.Name != f.service {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.versions[s.ResourceVersion] = e, true
	c := meta.FindStatusCondition(s.Status.Conditions, f.condition)
	if c != nil && (len(f.messages) == 0 || f.messages[len(f.messages)-1] != c.Message) {
		f.messages, f.at = append(f.messages, c.Message), append(f.at, time.Now())
	}
}

// until returns all messages up to a state of the service that somebody else has seen already, and when each came.
func (f *follower) until(service *v1alpha1.MachineService) (messages []string, at []time.Time) {
	f.t.Helper()
	return f.stop("it has seen version "+service.ResourceVersion, func() bool { return f.versions[service.ResourceVersion] })
}

// untilGone returns all messages up to the end of the service.
func (f *follower) untilGone() []string {
	f.t.Helper()
	messages, _ := f.stop("it has seen the end", func() bool { return f.last.Type == watch.Deleted })
	return messages
}

func (f *follower) stop(what string, enough func() bool) (messages []string, at []time.Time) {
	f.t.Helper()
	operatortest.Eventually(f.t, what, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return enough()
	})
	f.watch.Stop()
	<-f.ended
	return f.messages, f.at
}

// wantAtMostOneASecond checks how many of the messages are of a plan that began after a time: those that come by the second, and the one
// of its end. However late each is seen, there are no more of them than seconds have passed, and one.
func wantAtMostOneASecond(t *testing.T, began time.Time, all []string, at []time.Time) {
	t.Helper()
	count, took := 0, time.Duration(0)
	for i, message := range all {
		if strings.Contains(message, " operations done") {
			count, took = count+1, at[i].Sub(began)
		}
	}
	if count > int(took/time.Second)+1 {
		t.Errorf("%d messages came in %s:\n%s", count, took, strings.Join(all, "\n"))
	}
}

func TestTheStatusFollowsThePlan(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	web := service("web", "app:1", 4)
	// Each takes longer than it takes until the status is written again.
	web.Spec.Container.HealthCheck = &api.HealthCheck{Disable: true}
	web.Spec.Update.Monitor = &metav1.Duration{Duration: 1200 * time.Millisecond}
	followed := w.follow("web", "Progressing")
	began := time.Now()
	w.create(web)
	w.want(web, "Ready=True Deployed: all 4 containers work")

	all, at := followed.until(web)
	names := regexp.MustCompile(`web-\w{5}\b`)
	var said []string
	for _, message := range all {
		said = append(said, names.ReplaceAllString(message, "web-N"))
	}
	pattern := regexp.MustCompile(`^rolling: 4 to run\n` + // before the plan
		`([0-3] of 4 operations done; running web-N on engine-[12]\n){2,4}` + `4 of 4 operations done\n` + `$`)
	if text := strings.Join(said, "\n"); !pattern.MatchString(text) {
		t.Errorf("it says:\n%s", text)
	}
	wantAtMostOneASecond(t, began, all, at)

	// However much happens at once.
	wide := service("wide", "app:1", 8)
	wide.Spec.Update.Parallelism = 8
	followed = w.follow("wide", "Progressing")
	began = time.Now()
	w.create(wide)
	w.want(wide, "Ready=True")
	all, at = followed.until(wide)
	wantAtMostOneASecond(t, began, all, at)

	followed = w.follow("web", "Progressing")
	if err := w.user.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.wantGone(web)
	all = followed.untilGone()
	if !slices.ContainsFunc(all, func(m string) bool { return m == "its containers are being removed: 4 of 4 operations done" }) {
		t.Errorf("of the removal it says %s", fmt.Sprintf("%q", all))
	}
}
