package carrier_test

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func TestNoExpressionIsAskedOfWhatIsBeingDeleted(t *testing.T) {
	service := &carrier.Service{HealthCheck: func(*unstructured.Unstructured) *status.Result {
		return &status.Result{Status: status.FailedStatus}
	}}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	if got, err := service.StatusOf(object); err != nil || got.Status != status.FailedStatus {
		t.Errorf("it is %v, %v", got, err)
	}
	now := metav1.Now()
	object.SetDeletionTimestamp(&now)
	if got, err := service.StatusOf(object); err != nil || got.Status != status.TerminatingStatus {
		t.Errorf("while it is being deleted it is %v, %v", got, err)
	}
}
