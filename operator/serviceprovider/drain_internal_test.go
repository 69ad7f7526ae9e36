package serviceprovider

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestR11NoListOfACacheAsksForAnyVersion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan string, 1)
	informer := newDrainedInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			asked <- options.ResourceVersion
			cancel()
			return &corev1.ConfigMapList{}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, apierrors.NewBadRequest("this server does not stream lists")
		},
	}, &corev1.ConfigMap{}, 0, nil)
	informer.RunWithContext(ctx)
	if version := <-asked; version != "" {
		t.Errorf("the list asks for version %q", version)
	}
}
