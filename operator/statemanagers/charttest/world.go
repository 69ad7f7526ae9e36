package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

const (
	// system is the namespace of what is on the management cluster, and clusterName is the name of the cluster there.
	system, clusterName = "charttest", "ours"
	// look is the pause between two looks at something.
	look = 100 * time.Millisecond
	// startTimeout is when to give up on what is started, and cleanTimeout on what is cleaned up.
	startTimeout, cleanTimeout = time.Minute, 2 * time.Minute
)

// config is how charts are tried.
type config struct {
	// timeout is how long a step may take, and settle for how long nothing may happen until it is over.
	timeout, settle time.Duration
	// log is where the operator logs to.
	log io.Writer
	// progress is told what takes long.
	progress io.Writer
	// mode is when the state manager puts things right.
	mode v1alpha1.SyncMode
	// tamper goes around the requests of the references, and may be nil.
	tamper func(http.RoundTripper) http.RoundTripper
}

// world is a management cluster with an operator, the cluster that it puts services onto, and one for the tools of others.
type world struct {
	config
	scheme                   *runtime.Scheme
	management, ours, theirs *cluster
	folder                   string
	files                    *fileServer
	traffic                  *traffic
	// operator is the one that runs.
	operator *operatorRun
}

// newWorld starts everything, and waits until the operator can be given services.
func newWorld(ctx context.Context, c config) (w *world, err error) {
	w = &world{config: c, scheme: runtime.NewScheme(), traffic: newTraffic()}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(ctx))
		}
	}()
	if err := errors.Join(clientgoscheme.AddToScheme(w.scheme), v1alpha1.AddToScheme(w.scheme)); err != nil {
		return w, err
	}
	if w.folder, err = os.MkdirTemp("", "charttest-"); err != nil {
		return w, err
	}
	if w.files, err = serveFiles(); err != nil {
		return w, err
	}
	starting, startCtx := errgroup.WithContext(ctx)
	for as, wanted := range map[**cluster]clusterConfig{&w.management: {}, &w.ours: {workloads: true}, &w.theirs: {workloads: true, wrap: c.tamper}} {
		wanted.scheme, wanted.progress = w.scheme, c.progress
		starting.Go(func() (err error) {
			*as, err = startCluster(startCtx, wanted)
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return w, fmt.Errorf("start the control planes: %w", err)
	}
	if err := w.startOperator(ctx); err != nil {
		return w, err
	}
	return w, w.prepare(ctx)
}

// prepare makes the cluster known to the operator.
func (w *world) prepare(ctx context.Context) error {
	kubeconfig, err := os.ReadFile(w.ours.instance.Kubeconfig())
	if err != nil {
		return err
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}},
		&corev1.Secret{ObjectMeta: named(clusterName + target.DefaultSecretSuffix), Data: map[string][]byte{target.DefaultSecretKey: kubeconfig}},
		&v1alpha1.ClusterDeployment{ObjectMeta: named(clusterName)},
	} {
		// The operator makes the kinds known when it starts.
		err := eventually(ctx, startTimeout, func() error {
			err := w.management.client.Create(ctx, object)
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("make the cluster known to the operator: %w", err)
		}
	}
	return nil
}

// close ends everything.
func (w *world) close(ctx context.Context) error {
	var errs []error
	errs = append(errs, w.stopOperator())
	if w.files != nil {
		errs = append(errs, w.files.close())
	}
	for _, c := range []*cluster{w.theirs, w.ours, w.management} {
		if c != nil {
			errs = append(errs, c.stop(ctx))
		}
	}
	if w.folder != "" {
		errs = append(errs, os.RemoveAll(w.folder))
	}
	return errors.Join(errs...)
}
