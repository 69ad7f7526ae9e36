package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// template makes a version known to the operator, and returns the name of its template.
func (w *world) template(ctx context.Context, s *subject, v *version) (string, error) {
	name := s.id + "-" + roleOf(s, v)
	folder := "/" + name
	template := &v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
	if v.chart == nil {
		url := w.files.put(folder+"/files.tgz", v.archive)
		template.Spec.Kustomize = &v1alpha1.FileSource{Artifact: &v1alpha1.Artifact{URL: url}}
	} else {
		archive := fmt.Sprintf("%s-%s.tgz", v.chart.Name, v.chart.Version)
		index, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": map[string]any{
			v.chart.Name: []any{map[string]any{"apiVersion": v.chart.APIVersion, "name": v.chart.Name, "version": v.chart.Version, "urls": []any{archive}}},
		}})
		if err != nil {
			return "", err
		}
		w.files.put(folder+"/"+archive, v.archive)
		w.files.put(folder+"/index.yaml", index)
		template.Spec.Helm = &v1alpha1.HelmChart{Repository: w.files.url + folder, Chart: v.chart.Name, Version: v.chart.Version}
	}
	err := w.management.client.Create(ctx, template)
	if apierrors.IsAlreadyExists(err) {
		return name, nil
	}
	return name, err
}

func roleOf(s *subject, v *version) string {
	if v == s.updated {
		return "new"
	}
	return "old"
}

// put lists a version in the ServiceSet of a subject, and waits until the state manager says that it is deployed. Where it is known to
// fail, the first failure ends the wait.
func (w *world) put(ctx context.Context, s *subject, v *version, fails bool) error {
	name, err := w.template(ctx, s, v)
	if err != nil {
		return err
	}
	entry := v1alpha1.ServiceWithValues{Namespace: s.namespace(), Name: s.id, Template: name, Version: v.said}
	if len(v.values) > 0 {
		text, err := yaml.Marshal(v.values)
		if err != nil {
			return err
		}
		entry.Values = string(text)
	}
	set := w.set(s)
	settings, err := json.Marshal(statemanager.Config{SyncMode: w.mode})
	if err != nil {
		return err
	}
	set.Labels = map[string]string{statemanagers.ProviderLabel: v1alpha1.DefaultStateManagementProvider}
	set.Spec = v1alpha1.ServiceSetSpec{
		Cluster: clusterName, Services: []v1alpha1.ServiceWithValues{entry},
		Provider: v1alpha1.StateManagementProviderConfig{Name: v1alpha1.DefaultStateManagementProvider, Config: &apiextensionsv1.JSON{Raw: settings}},
	}
	services := set.Spec.Services
	if err := w.management.client.Create(ctx, set); apierrors.IsAlreadyExists(err) {
		if err := w.management.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		set.Spec.Services = services
		if err := w.management.client.Update(ctx, set); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	var failed error
	err = eventually(ctx, w.timeout, func() error {
		if err := w.management.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		state, message := stateOf(set, name)
		if state == v1alpha1.ServiceStateFailed && fails {
			failed = errors.New(message)
			return nil
		}
		if state != v1alpha1.ServiceStateDeployed {
			return fmt.Errorf("it is %s: %s", state, message)
		}
		return nil
	})
	return errors.Join(err, failed)
}

// stateOf tells how the one service of a set is, in a template.
func stateOf(set *v1alpha1.ServiceSet, template string) (v1alpha1.ServicePhase, string) {
	if set.Status.ObservedGeneration != set.Generation || len(set.Status.Services) != 1 {
		return v1alpha1.ServiceStatePending, messageOf(set.Status.Conditions, v1alpha1.ConditionReady)
	}
	service := set.Status.Services[0]
	if service.State == v1alpha1.ServiceStateFailed {
		return service.State, service.FailureMessage
	}
	if service.Template != "" && service.Template != template {
		return v1alpha1.ServiceStatePending, "it is in template " + service.Template
	}
	return service.State, messageOf(service.Conditions, "Healthy")
}

func messageOf(conditions []metav1.Condition, kind string) string {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return "nothing is said"
}

// set is the ServiceSet of a subject, without what it says.
func (w *world) set(s *subject) *v1alpha1.ServiceSet {
	return &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: s.id}}
}

// remove deletes the ServiceSet of a subject, and waits until the state manager lets it go.
func (w *world) remove(ctx context.Context, s *subject) error {
	set := w.set(s)
	if err := client.IgnoreNotFound(w.management.client.Delete(ctx, set)); err != nil {
		return err
	}
	return eventually(ctx, w.timeout, func() error {
		err := w.management.client.Get(ctx, client.ObjectKeyFromObject(set), set)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("the ServiceSet stays: %s", messageOf(set.Status.Conditions, v1alpha1.ConditionReady))
	})
}

// quiet waits until the state manager has nothing more to do, has it look at everything anew, without memory, and returns what it has
// done all the same.
func (w *world) quiet(ctx context.Context, s *subject) ([]string, error) {
	calm := func() error {
		return eventually(ctx, w.timeout, func() error {
			if w.traffic.silent() < w.settle {
				return errors.New("the state manager goes on sending requests to the cluster")
			}
			return nil
		})
	}
	if err := calm(); err != nil {
		return nil, err
	}
	set := w.set(s)
	if err := w.management.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return nil, err
	}
	version, before := set.ResourceVersion, w.traffic.writes.Count()
	if err := w.stopOperator(); err != nil {
		return nil, fmt.Errorf("stop the operator: %w", err)
	}
	if err := w.startOperator(ctx); err != nil {
		return nil, fmt.Errorf("start the operator again: %w", err)
	}
	err := eventually(ctx, startTimeout, func() error {
		n, err := w.operator.reconciled()
		if err == nil && n == 0 {
			err = errors.New("the operator does not look at the ServiceSet again")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := calm(); err != nil {
		return nil, err
	}
	var done []string
	for _, write := range w.traffic.writes.Writes()[before:] {
		done = append(done, write.Request.String())
	}
	if err := w.management.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return nil, err
	}
	if set.ResourceVersion != version {
		done = append(done, "PUT the status of the ServiceSet")
	}
	return done, nil
}
