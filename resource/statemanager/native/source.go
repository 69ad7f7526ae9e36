package native

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// source fetches what a template names when a carrier asks for it.
type source struct {
	fetcher  *fetch.Fetcher
	objects  *objects
	template *v1alpha1.ServiceTemplate
	// local are the files of a ConfigMap or Secret, which are read beforehand.
	local *artifact.Files
}

// Chart implements carrier.Source.
func (s *source) Chart(ctx context.Context) (*artifact.Chart, error) {
	helm := s.template.Spec.Helm
	if helm == nil {
		return nil, framework.Permanent(fmt.Errorf("ServiceTemplate %s is no chart", s.template.Name))
	}
	credentials, err := s.credentials(ctx, helm.SecretName)
	if err != nil {
		return nil, err
	}
	chart, err := s.fetcher.Chart(ctx, *helm, credentials)
	return chart, fetched(err)
}

// Files implements carrier.Source.
func (s *source) Files(ctx context.Context) (*artifact.Files, string, error) {
	from := filesOf(s.template)
	switch {
	case from == nil:
		return nil, "", framework.Permanent(fmt.Errorf("ServiceTemplate %s has no files", s.template.Name))
	case s.local != nil:
		return s.local, from.Path, nil
	case from.Artifact == nil:
		return nil, "", framework.Permanent(fmt.Errorf("ServiceTemplate %s does not say where its files are", s.template.Name))
	}
	credentials, err := s.credentials(ctx, from.Artifact.SecretName)
	if err != nil {
		return nil, "", err
	}
	files, err := s.fetcher.Files(ctx, *from.Artifact, credentials)
	return files, from.Path, fetched(err)
}

// filesOf returns where the files of a template are; nil for a chart.
func filesOf(template *v1alpha1.ServiceTemplate) *v1alpha1.FileSource {
	if template.Spec.Kustomize != nil {
		return template.Spec.Kustomize
	}
	return template.Spec.Resources
}

// fetched says of an error of the fetcher whether it is permanent.
func fetched(err error) error {
	if fetch.Permanent(err) {
		return framework.Permanent(err)
	}
	return err
}

func (s *source) credentials(ctx context.Context, name string) (fetch.Credentials, error) {
	if name == "" {
		return fetch.Credentials{}, nil
	}
	obj, err := s.objects.read(ctx, statemanager.Reference{
		Kind: statemanager.KindSecret, ObjectKey: client.ObjectKey{Namespace: s.template.Namespace, Name: name},
	})
	if err != nil {
		return fetch.Credentials{}, fmt.Errorf("read the credentials: %w", err)
	}
	credentials, err := fetch.CredentialsFromSecret(obj.(*corev1.Secret))
	return credentials, fetched(err)
}

// readLocal reads the files of a template that are in a ConfigMap or Secret; nil for others.
func (o *objects) readLocal(ctx context.Context, template *v1alpha1.ServiceTemplate) (*artifact.Files, error) {
	from := filesOf(template)
	if from == nil || from.LocalSource == nil {
		return nil, nil
	}
	obj, err := o.read(ctx, statemanager.Reference{
		Kind: from.LocalSource.Kind, ObjectKey: client.ObjectKey{Namespace: template.Namespace, Name: from.LocalSource.Name},
	})
	if err != nil {
		return nil, fmt.Errorf("read the files: %w", err)
	}
	var files *artifact.Files
	switch obj := obj.(type) {
	case *corev1.Secret:
		files, err = fetch.FilesOfSecret(obj)
	case *corev1.ConfigMap:
		files, err = fetch.FilesOfConfigMap(obj)
	}
	return files, fetched(err)
}
