package natscontroller_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/natscontroller"
)

// originalController is what a custom controller of the original implements.
type originalController interface {
	Run(threadiness int, stopCh <-chan struct{}, errCh chan<- error)
	SyncHandler(string) error
	HandleSecondary(obj any)
	GarbageSecondaries()
	Clean()
}

type controllerRuntime = natscontroller.ControllerRuntime[*Gateway]

// The names and signatures that users of the original know, with one type parameter in place of nine and a Config in place
// of the list of clients. This file does not compile when one is lost.
var (
	_ func(natscontroller.Config[*Gateway]) (*controllerRuntime, error)                = natscontroller.NewControllerRuntime[*Gateway]
	_ func(*controllerRuntime, int, <-chan struct{}, chan<- error)                     = (*controllerRuntime).Run
	_ func(*controllerRuntime, natscontroller.IController)                             = (*controllerRuntime).SetCustomController
	_ func(*controllerRuntime, string, natscontroller.Operation)                       = (*controllerRuntime).EnqueueKey
	_ func(*controllerRuntime, string, natscontroller.Operation, time.Duration)        = (*controllerRuntime).EnqueueKeyAfter
	_ func(*controllerRuntime, any) (metav1.Object, string, error)                     = (*controllerRuntime).DecomposeKubeSecondaryResource
	_ func(c *controllerRuntime, object any, eventtype string, reason, message string) = (*controllerRuntime).Event
	_ natscontroller.IController                                                       = originalController(nil)
	_ originalController                                                               = natscontroller.IController(nil)
	_ natscontroller.IController                                                       = (*controllerRuntime)(nil)
	_ natscontroller.IController                                                       = (*classic)(nil)
	_ uint8                                                                            = uint8(natscontroller.OperationPut)
	_                                                                                  = [...]natscontroller.Operation{
		0: natscontroller.OperationPut, 1: natscontroller.OperationDelete, 2: natscontroller.OperationPurge, 3: natscontroller.OperationSecondary,
	}
)

func TestConstantsAreThoseOfTheOriginal(t *testing.T) {
	got := []string{
		natscontroller.ReasonResourceSynced, natscontroller.ReasonErrResourceExists,
		natscontroller.MessageErrResourceExists, natscontroller.MessageResourceSyncedCreated,
		natscontroller.MessageResourceSyncedUpdated, natscontroller.MessageResourceSyncedDeleted,
		natscontroller.OwnerKeyLabel, natscontroller.OwnerkindLabel,
		natscontroller.OwnerKeyAnnotation, natscontroller.OwnerkindAnnotation,
	}
	want := []string{
		"Synced", "ErrResourceExists", "Resource %q already exists and is not managed by this controller",
		"%q synced successfully (created)", "%q synced successfully (updated)", "%q synced successfully (deleted)",
		"kumori/ownerkey", "kumori/ownerkind", "kumori/ownerkey", "kumori/ownerkind",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the constants (-want +got):\n%s", diff)
	}
}
