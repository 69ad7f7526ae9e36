package operatortest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// lagging is a client behind a lag, and the user's beside it.
type lagging struct {
	t            *testing.T
	lag          *operatortest.Lag
	client, user kubernetes.Interface
	namespace    string
}

func newLagging(t *testing.T) *lagging {
	t.Helper()
	kube := operatortest.Start(t)
	lag := operatortest.NewLag()
	return &lagging{t: t, lag: lag, client: newClient(t, lag.Wrap(kube.RESTConfig())), user: newClient(t, kube.RESTConfig()), namespace: kube.Namespace(t)}
}

var selected = metav1.ListOptions{LabelSelector: siteLabel}

// put creates a ConfigMap, or gives it another text, through the client given.
func (l *lagging) put(client kubernetes.Interface, name, text string) string {
	l.t.Helper()
	maps := client.CoreV1().ConfigMaps(l.namespace)
	is, err := maps.Patch(l.t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"data":{"text":%q}}`, text), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		is, err = maps.Create(l.t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{siteLabel: ""}}, Data: map[string]string{"text": text},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return is.ResourceVersion
}

// list returns what a list of a version shows, and its own version. One of any version, 0, may be older than a write of another client.
func (l *lagging) list(version string) (shown, at string) {
	l.t.Helper()
	list, err := l.client.CoreV1().ConfigMaps(l.namespace).List(l.t.Context(), metav1.ListOptions{LabelSelector: siteLabel, ResourceVersion: version})
	if err != nil {
		l.t.Fatal(err)
	}
	var texts []string
	for _, item := range list.Items {
		texts = append(texts, item.Name+"="+item.Data["text"])
	}
	slices.Sort(texts)
	return strings.Join(texts, " "), list.ResourceVersion
}

// leaveOut makes a ConfigMap that a list then leaves out, and returns the version of that list.
func (l *lagging) leaveOut(name string) (version string) {
	l.t.Helper()
	l.put(l.user, name, "1")
	l.lag.Omit(func(r operatortest.Request) bool { return r.Resource == "configmaps" && r.Name == name })
	_, version = l.list("")
	return version
}

// watch begins a watch at a version.
func (l *lagging) watch(version string) watch.Interface {
	l.t.Helper()
	w, err := l.client.CoreV1().ConfigMaps(l.namespace).Watch(l.t.Context(), metav1.ListOptions{LabelSelector: siteLabel, ResourceVersion: version})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(w.Stop)
	return w
}

// received waits until a watch behind the lag has got a version from the server.
func (l *lagging) received(version string) {
	l.t.Helper()
	operatortest.Eventually(l.t, "the lag receives version "+version, func() bool { return operatortest.HasReceived(l.lag, version) })
}

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	got := ""
	operatortest.Eventually(t, "there is an event", func() bool {
		select {
		case e, ok := <-w.ResultChan():
			switch o := e.Object.(type) {
			case *corev1.ConfigMap:
				got = fmt.Sprintf("%s %s=%s", e.Type, o.Name, o.Data["text"])
			case *metav1.Status:
				got = fmt.Sprintf("%s %d", e.Type, o.Code)
			default:
				got = fmt.Sprintf("open: %t", ok)
			}
			return true
		default:
			return false
		}
	})
	return got
}

// want compares the next events of a watch.
func want(t *testing.T, w watch.Interface, events ...string) {
	t.Helper()
	for _, event := range events {
		if got := next(t, w); got != event {
			t.Errorf("got the event %q, want %q", got, event)
		}
	}
}

func nothing(t *testing.T, w watch.Interface) {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		t.Errorf("got an event %s that is to be held: %v", e.Type, e.Object)
	default:
	}
}

func TestListsOfAnyVersionAndWatchesShowAnEarlierStateUntilReleased(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.put(l.client, "a", "1")
	l.put(l.client, "b", "1")
	newest := l.put(l.client, "a", "2")
	l.lag.GoBack(2)
	shown, version := l.list("0")
	if shown != "a=1" {
		t.Errorf("a list of any version shows %q, want what was two changes ago", shown)
	}
	if shown, _ := l.list(""); shown != "a=2 b=1" {
		t.Errorf("a list without a version shows %q, want the truth", shown)
	}
	if shown, _ := l.list(newest); shown != "a=2 b=1" {
		t.Errorf("a list that is not to be older than the newest shows %q", shown)
	}
	if _, err := l.client.CoreV1().ConfigMaps(l.namespace).Get(t.Context(), "b", metav1.GetOptions{}); err != nil {
		t.Errorf("a GET: %v", err)
	}
	w := l.watch(version)
	last := l.put(l.user, "b", "2")
	l.received(last)
	nothing(t, w)
	l.lag.Release()
	want(t, w, "ADDED b=1", "MODIFIED a=2", "MODIFIED b=2")
	if shown, _ := l.list("0"); shown != "a=2 b=2" || l.lag.Lags() {
		t.Errorf("after the release a list shows %q", shown)
	}
}

func TestListsThatAskForTheTruthShowAnEarlierStateWhereTheServerLies(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.put(l.user, "a", "1")
	_, version := l.list("")
	newest := l.put(l.user, "a", "2")
	earlier, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	l.lag.Mislead(earlier)
	for version, want := range map[string]string{"": "a=1", "0": "a=1", newest: "a=2"} {
		if shown, _ := l.list(version); shown != want {
			t.Errorf("a list of version %q shows %q, want %q", version, shown, want)
		}
	}
	byName, err := l.client.CoreV1().ConfigMaps(l.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	if err != nil || len(byName.Items) != 1 || byName.Items[0].Data["text"] != "2" {
		t.Errorf("a list of one object shows %v, %v, want the truth", byName.Items, err)
	}
	w := l.watch(version)
	l.received(newest)
	nothing(t, w)
	l.lag.Release()
	want(t, w, "MODIFIED a=2")
	if shown, _ := l.list(""); shown != "a=2" {
		t.Errorf("a list shows %q once the server has caught up", shown)
	}
}

func TestAServerThatLagsStreamsNoLists(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	yes := true
	_, err := l.client.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a streaming list: %v, want a refusal", err)
	}
}

func TestAnObjectIsLeftOutOfOneListAndFollowsInTheWatch(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.put(l.user, "a", "1")
	l.put(l.user, "b", "1")
	l.lag.Omit(func(r operatortest.Request) bool { return r.Resource == "configmaps" && r.Name == "b" })
	shown, version := l.list("")
	if again, _ := l.list(""); shown != "a=1" || again != "a=1 b=1" {
		t.Errorf("the lists show %q and %q, want one without b", shown, again)
	}
	w := l.watch(version)
	l.received(l.put(l.user, "a", "2"))
	l.lag.Release()
	want(t, w, "MODIFIED a=2", "ADDED b=1")
}

func TestWhatAListHasLeftOutFollowsAlthoughAnotherWatchShowsItAsItWasBefore(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	_, before := l.list("")
	l.put(l.user, "b", "1")
	l.lag.Omit(func(r operatortest.Request) bool { return r.Resource == "configmaps" && r.Name == "b" })
	shown, version := l.list("")
	if shown != "" {
		t.Errorf("the list shows %q, want it without b", shown)
	}
	other, w := l.watch(before), l.watch(version)
	want(t, other, "ADDED b=1")
	nothing(t, w)
	l.lag.Release()
	want(t, w, "ADDED b=1")
}

func TestWhatAListHasLeftOutFollowsInTheWatchThatGoesOnWhereItEndedAndInNoOther(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	version := l.leaveOut("b")
	other, err := l.client.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a", ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Stop)
	l.lag.Release()
	later := l.watch(version)
	want(t, later, "ADDED b=1")
	l.put(l.user, "a", "1")
	want(t, other, "ADDED a=1")
	want(t, later, "ADDED a=1")
}

func TestWhatAListHasLeftOutFollowsInAWatchThatIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	version := l.leaveOut("b")
	w := l.watch(version)
	at := l.put(l.user, "a", "1")
	want(t, w, "ADDED a=1")
	w.Stop()
	again := l.watch(at)
	nothing(t, again)
	l.lag.Release()
	want(t, again, "ADDED b=1")
}

func TestWhatAListHasLeftOutAndAWatchHasShownSinceIsNotShownAsItWas(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	version := l.leaveOut("b")
	w := l.watch(version)
	l.put(l.user, "b", "2")
	want(t, w, "MODIFIED b=2")
	l.lag.Release()
	l.put(l.user, "b", "3")
	want(t, w, "MODIFIED b=3")
}

func TestEventsAreDroppedUntilTheNextListing(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.put(l.user, "a", "1")
	_, version := l.list("")
	w := l.watch(version)
	l.lag.Drop(nil)
	l.received(l.put(l.user, "a", "2"))
	nothing(t, w)
	l.lag.Release()
	want(t, w, "ERROR 410", "open: false")
}

func TestEventsAreRepeatedAtOnceAndFromTheFirstOneOn(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.put(l.user, "a", "1")
	_, version := l.list("")
	w := l.watch(version)
	l.lag.Repeat(nil)
	l.put(l.user, "a", "2")
	l.received(l.put(l.user, "a", "3"))
	l.lag.Release()
	want(t, w, "MODIFIED a=2", "MODIFIED a=2", "MODIFIED a=3", "MODIFIED a=3", "MODIFIED a=2", "MODIFIED a=3")
}

func TestEventsOfOneKindComeAfterThoseOfTheOthers(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.put(l.user, "a", "1")
	_, version := l.list("")
	maps := l.watch(version)
	secrets, err := l.client.CoreV1().Secrets(l.namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(secrets.Stop)
	l.lag.Hold(func(r operatortest.Request) bool { return r.Resource == "configmaps" })
	l.received(l.put(l.user, "a", "2"))
	if _, err := l.user.CoreV1().Secrets(l.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := <-secrets.ResultChan(); e.Type != watch.Added {
		t.Errorf("the other kind: %v", e)
	}
	nothing(t, maps)
	l.lag.Release()
	want(t, maps, "MODIFIED a=2")
}

func TestWatchesAreEndedAndRequestsRefusedOnceForEachKind(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.put(l.user, "a", "1")
	_, version := l.list("")
	w := l.watch(version)
	l.lag.Refuse(operatortest.TooManyRequests(0), operatortest.InternalError())
	want(t, w, "ERROR 410", "open: false")
	// client-go tries again by itself after 429.
	if _, err := l.client.CoreV1().ConfigMaps(l.namespace).List(t.Context(), selected); !apierrors.IsInternalError(err) {
		t.Errorf("the list after 429: %v, want 500", err)
	}
	if shown, _ := l.list(""); shown != "a=1" {
		t.Errorf("the list after 500 shows %q", shown)
	}
	if _, err := l.client.CoreV1().Secrets(l.namespace).List(t.Context(), selected); !apierrors.IsInternalError(err) {
		t.Errorf("the list of another kind: %v, want 500", err)
	}
}
