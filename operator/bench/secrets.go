package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
)

// readEach is how many Secrets there are for one that is reconciled.
const readEach = 1000

// watchedSecrets measures what stays on the heap of an operator that is told of all Secrets and reconciles few of them. That of controller-runtime
// has them in its cache, which is what its client reads by default; operatorkit's has their metadata, and reads one when it needs it.
func watchedSecrets(ctx context.Context, e *environment) ([]line, error) {
	namespace, err := e.cluster.namespace(ctx, "secrets")
	if err != nil {
		return nil, err
	}
	e.say("secrets: create %d secrets of 1 KB", e.secrets)
	err = inParallel(ctx, 16, e.secrets, func(ctx context.Context, i int) error {
		return e.cluster.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName(i), Labels: map[string]string{"app.kubernetes.io/name": "bench"}},
			Data:       map[string][]byte{"username": []byte(randomText(16)), "password": []byte(randomText(32)), "ca.crt": []byte(randomText(900))},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("create secrets: %w", err)
	}
	s, err := e.fewRounds().compare(ctx, "secrets",
		contender{controllerRuntime, e.secrets, func(ctx context.Context, b *testing.B) error {
			return e.secretsWithControllerRuntime(ctx, b, namespace)
		}},
		contender{operatorKit, e.secrets, func(ctx context.Context, b *testing.B) error {
			return e.secretsWithOperatorKit(ctx, b, namespace)
		}},
	)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d secrets watched, %d reconciled: held", e.secrets, e.reconciledSecrets())
	return []line{compareLine(what, inBytes, s, extra(heapBytes)).ratioAtMost(0.25)}, nil
}

func secretName(i int) string { return "secret-" + strconv.Itoa(i) }

func (e *environment) reconciledSecrets() int { return max(1, e.secrets/readEach) }

// readSecrets reads those that are reconciled.
func (e *environment) readSecrets(ctx context.Context, reader client.Reader, namespace string) error {
	for i := range e.reconciledSecrets() {
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secretName(i)}, &corev1.Secret{}); err != nil {
			return err
		}
	}
	return nil
}

func (e *environment) secretsWithControllerRuntime(ctx context.Context, b *testing.B, namespace string) error {
	return e.heldByControllerRuntime(ctx, b, namespace, e.secrets, &corev1.Secret{}, &corev1.SecretList{}, func(ctx context.Context, c client.Reader) error {
		return e.readSecrets(ctx, c, namespace)
	})
}

func (e *environment) secretsWithOperatorKit(ctx context.Context, b *testing.B, namespace string) error {
	metadata := informer.KubernetesConfig{Object: &corev1.Secret{}, MetadataOnly: true}
	return e.heldByOperatorKit(ctx, b, namespace, e.secrets, metadata, func(ctx context.Context, _ *informer.Kubernetes) error {
		return e.readSecrets(ctx, e.cluster.client, namespace)
	})
}
