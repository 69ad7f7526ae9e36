package operatortest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestFaultsAtTheFirstWriteOfAClient(t *testing.T) {
	server := operatortest.Start(t)
	noError := func(err error) bool { return err == nil }
	canceled := func(err error) bool { return errors.Is(err, context.Canceled) }
	for _, test := range []struct {
		fault    operatortest.Fault
		err      func(error) bool
		statuses []int // of the recorded writes
		exists   bool
		atLeast  time.Duration
	}{
		{fault: operatortest.FailBefore(), err: utilnet.IsConnectionRefused, statuses: []int{0}},
		{fault: operatortest.FailAfter(), err: utilnet.IsConnectionReset, statuses: []int{201}, exists: true},
		{fault: operatortest.Delay(50 * time.Millisecond), err: noError, statuses: []int{201}, exists: true, atLeast: 50 * time.Millisecond},
		{fault: operatortest.Conflict(), err: apierrors.IsConflict, statuses: []int{0}},
		{fault: operatortest.TooManyRequests(600 * time.Millisecond), err: noError, statuses: []int{0, 201}, exists: true, atLeast: time.Second},
		{fault: operatortest.InternalError(), err: apierrors.IsInternalError, statuses: []int{0}},
		{fault: operatortest.Answer(apierrors.NewServiceUnavailable("down")), err: apierrors.IsServiceUnavailable, statuses: []int{0}},
		{fault: operatortest.Lie(apierrors.NewServiceUnavailable("down")), err: apierrors.IsServiceUnavailable, statuses: []int{201}, exists: true},
		{fault: operatortest.LieNotFound(), err: apierrors.IsNotFound, statuses: []int{201}, exists: true},
		{fault: operatortest.LieConflict(), err: apierrors.IsAlreadyExists, statuses: []int{201}, exists: true},
		{fault: operatortest.LieInternalError(), err: apierrors.IsInternalError, statuses: []int{201}, exists: true},
		{fault: operatortest.TimeOut(), err: canceled, statuses: []int{0}},
		{fault: operatortest.TimeOutAfter(), err: canceled, statuses: []int{201}, exists: true},
	} {
		t.Run(test.fault.String(), func(t *testing.T) {
			t.Parallel()
			namespace := server.Namespace(t)
			faults := operatortest.NewFaults()
			faults.At(1, test.fault)
			client := newClient(t, faults.Wrap(server.RESTConfig())).CoreV1().ConfigMaps(namespace)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			start := time.Now()
			go func() {
				_, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
				done <- err
			}()
			operatortest.Eventually(t, "the writes have been answered as expected", func() bool {
				return cmp.Equal(test.statuses, statuses(faults))
			})
			if test.err != nil && test.err(context.Canceled) {
				cancel()
			}
			if err := <-done; !test.err(err) {
				t.Errorf("got the error: %v", err)
			}
			if took := time.Since(start); took < test.atLeast {
				t.Errorf("took %s, want at least %s", took, test.atLeast)
			}
			if diff := cmp.Diff(test.statuses, statuses(faults)); diff != "" {
				t.Errorf("statuses of the writes (-want +got):\n%s", diff)
			}
			if got, want := faults.Writes()[0].String(), fmt.Sprintf("write 1: POST configmaps %s/a (%s)", namespace, test.fault); got != want {
				t.Errorf("recorded %q, want %q", got, want)
			}

			_, err := newClient(t, server.RESTConfig()).CoreV1().ConfigMaps(namespace).Get(t.Context(), "a", metav1.GetOptions{})
			if exists := err == nil; exists != test.exists || err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("the object exists: %t (%v), want %t", exists, err, test.exists)
			}
		})
	}
}

func statuses(faults *operatortest.Faults) []int {
	var statuses []int
	for _, write := range faults.Writes() {
		statuses = append(statuses, write.Status)
	}
	return statuses
}

func TestOneOfManyConcurrentWritesFails(t *testing.T) {
	const writers, each, n = 8, 5, 17
	server := operatortest.Start(t)
	namespace := server.Namespace(t)
	faults := operatortest.NewFaults()
	faults.At(n, operatortest.FailBefore())
	client := newClient(t, faults.Wrap(server.RESTConfig())).CoreV1().ConfigMaps(namespace)

	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for i := range each {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%d-%d", writer, i)}}
				_, err := client.Create(t.Context(), object, metav1.CreateOptions{})
				if err != nil && !errors.Is(err, operatortest.ErrInjected) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()

	if got := faults.Count(); got != writers*each {
		t.Errorf("counted %d writes, want %d", got, writers*each)
	}
	failed := faults.Writes()[n-1].Name
	for writer := range writers {
		for i := range each {
			name := fmt.Sprintf("%d-%d", writer, i)
			_, err := client.Get(t.Context(), name, metav1.GetOptions{})
			if exists := err == nil; exists != (name != failed) {
				t.Errorf("ConfigMap %s: %v; the write that failed is that of %s", name, err, failed)
			}
		}
	}
}

func TestACutEndsTheWatchesOfAClient(t *testing.T) {
	server := operatortest.Start(t)
	namespace := server.Namespace(t)
	faults := operatortest.NewFaults()
	client := newClient(t, faults.Wrap(server.RESTConfig())).CoreV1().ConfigMaps(namespace)
	watch, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	faults.Cut()
	for range watch.ResultChan() { // ends with the watch
	}
	if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); !utilnet.IsConnectionRefused(err) {
		t.Errorf("a read while cut: got %v, want a refused connection", err)
	}

	faults.Restore()
	if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a read after the cut: got %v, want not found", err)
	}
}
