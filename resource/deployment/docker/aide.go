package docker

import (
	"archive/tar"
	stdbytes "bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/framework/identity"
)

// aide is a container that the client makes on a network for the containers of services there.
type aide struct {
	// name is that of the container, and what says what it is.
	name, what string
	image      string
	// made is the label that has what the container is made of: one that is made of something else is made anew.
	made, of string
	// labels are added to those that say whose it is.
	labels map[string]string
	// config and host are completed with what all aides have.
	config container.Config
	host   container.HostConfig
	// address is that on the network.
	address network.EndpointSettings
	// prepare is called with the ID before it is started, and begun after that.
	prepare, begun func(id string) error
}

// isAide tells whether a container is an aide on a network, by its name as well: its image may have the label too.
func isAide(item *container.Summary, label, network, suffix string) bool {
	return item.Labels[label] == network && item.Labels[LabelForm] == identity.Form && slices.Contains(item.Names, "/"+network+suffix)
}

// errKept is an aide of which the next one can't be made, for want of its image.
var errKept = errors.New("the one before runs on")

// unlessKept is for who can do with the aide before.
func unlessKept(err error) error {
	if errors.Is(err, errKept) {
		return nil
	}
	return err
}

// ensure makes sure that an aide runs. One that is made of something else runs until the image of the next one is on the machine: that may
// take its time, and fails with errKept while the registry does not answer.
func (m *machine) ensure(ctx context.Context, engine *moby.Client, a aide, at shared) error {
	there, err := engine.ContainerInspect(ctx, a.name, moby.ContainerInspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
	case err != nil:
		return err
	case there.Container.State == nil || there.Container.Config == nil:
		return errLeftOut
	case there.Container.State.Running && there.Container.Config.Labels[a.made] == a.of:
		return nil
	}
	if err := m.need(ctx, engine, a.image); err != nil {
		if state := there.Container.State; state != nil && state.Running {
			err = fmt.Errorf("%w: %w", errKept, err)
		}
		return err
	}
	if there.Container.ID != "" {
		if err := removeContainer(ctx, engine, there.Container.ID); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	a.labels[a.made] = a.of
	a.config.Image, a.config.Labels = a.image, m.client.markContainer(ctx, nil)
	for name, value := range a.labels {
		a.config.Labels[name] = value
	}
	a.host.NetworkMode = container.NetworkMode(at.name)
	a.host.RestartPolicy = container.RestartPolicy{Name: container.RestartPolicyUnlessStopped}
	a.host.CapDrop, a.host.CapAdd = []string{"ALL"}, []string{"NET_BIND_SERVICE"}
	created, err := engine.ContainerCreate(ctx, moby.ContainerCreateOptions{
		Name: a.name, Config: &a.config, HostConfig: &a.host,
		NetworkingConfig: &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{at.name: &a.address}},
	})
	if err != nil {
		return fmt.Errorf("create %s: %w", a.what, err)
	}
	m.try(created.ID)
	if err := a.prepare(created.ID); err != nil {
		return err
	}
	err = startByID(ctx, engine, created.ID)
	if err == nil && a.begun != nil {
		err = a.begun(created.ID)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", a.what, err), removeContainer(ctx, engine, created.ID))
	}
	m.tried(created.ID)
	return nil
}

// try begins the trial of an aide, until tried: what becomes of it knows who makes it. Whoever else was told would have it made again at
// once, for as long as it does not work.
func (m *machine) try(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trials[id] = false
}

func (m *machine) tried(id string) {
	m.mu.Lock()
	ended := m.trials[id]
	delete(m.trials, id)
	m.mu.Unlock()
	if ended {
		m.client.notify(Notice{MachineID: m.spec().ID})
	}
}

// onTrial tells whether an aide that has ended, or is gone, is on trial.
func (m *machine) onTrial(id string, gone bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, on := m.trials[id]
	switch {
	case on && gone:
		delete(m.trials, id)
	case on:
		m.trials[id] = true
	}
	return on
}

// need pulls an image unless it is there.
func (m *machine) need(ctx context.Context, engine *moby.Client, image string) error {
	_, err := engine.ImageInspect(ctx, image)
	if !errdefs.IsNotFound(err) {
		return err
	}
	if err := m.client.PullImage(ctx, m.spec().ID, image, nil); err != nil {
		return fmt.Errorf("pull image %s: %w", image, err)
	}
	return nil
}

// writeFile writes a file that everybody may read into a container. It replaces one that is there.
func writeFile(ctx context.Context, engine *moby.Client, id, name string, content []byte) error {
	var archive stdbytes.Buffer
	w := tar.NewWriter(&archive)
	err := errors.Join(
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Base(name), Mode: 0o444, Size: int64(len(content)), Format: tar.FormatPAX}),
		func() error { _, err := w.Write(content); return err }(), w.Close(),
	)
	if err != nil {
		return err
	}
	_, err = engine.CopyToContainer(ctx, id, moby.CopyToContainerOptions{DestinationPath: path.Dir(name), Content: &archive})
	return err
}

// readFile returns a file of a container, or nil if it is not there.
func readFile(ctx context.Context, engine *moby.Client, id, name string) ([]byte, error) {
	content, err := copyOut(ctx, engine, id, name)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	return content, err
}

// copyOut returns a file of a container.
func copyOut(ctx context.Context, engine *moby.Client, id, name string) ([]byte, error) {
	copied, err := engine.CopyFromContainer(ctx, id, moby.CopyFromContainerOptions{SourcePath: name})
	if err != nil {
		return nil, err
	}
	defer func() { _ = copied.Content.Close() }()
	archive := tar.NewReader(copied.Content)
	if _, err := archive.Next(); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(archive, maxConfig))
}
