package gateways

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReadyCondition says of a gateway whether it has all it needs. The reasons say what is so.
const (
	ReadyCondition      = "Ready"
	ReasonServing       = "Serving"
	ReasonNoCertificate = "NoCertificate"
)

// timeout is for what has no context of its own.
const timeout = 30 * time.Second

// SyncHandler implements natscontroller.IController. When all resources of a gateway are as they should be, it says in a
// condition how the gateway is, and in an event when that has changed.
func (c *Controller) SyncHandler(key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	gateway, err := c.gateways.Bucket().Get(ctx, key)
	if apierrors.IsNotFound(err) || err == nil && gateway.DeletionTimestamp != nil {
		return nil
	}
	if err != nil {
		return err
	}

	ready := metav1.Condition{Type: ReadyCondition, Status: metav1.ConditionTrue, Reason: ReasonServing, Message: "all is as it should be"}
	severity := corev1.EventTypeNormal
	if _, _, err := c.inspectCertificate(gateway); err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, ReasonNoCertificate, err.Error()
		severity = corev1.EventTypeWarning
	}
	if !meta.SetStatusCondition(&gateway.Conditions, ready) {
		return nil
	}
	if err := c.gateways.Bucket().Update(ctx, gateway); err != nil {
		return err
	}
	c.Event(gateway, severity, ready.Reason, ready.Message)
	return nil
}

// inspectCertificate returns the fingerprint of the certificate of a gateway and when it expires, or why there is none.
func (c *Controller) inspectCertificate(g *Gateway) (fingerprint string, expires time.Time, err error) {
	certificate, exists, err := c.certificates.Lookup(g.Certificate)
	if err != nil {
		return "", time.Time{}, err
	}
	if !exists {
		return "", time.Time{}, fmt.Errorf("certificate %s does not exist", g.Certificate)
	}
	return certificate.Inspect()
}
