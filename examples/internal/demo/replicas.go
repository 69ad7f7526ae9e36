package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// replicaVariable is set for a process that is a replica of the operator, to its name.
const replicaVariable = "DEMO_REPLICA"

// Replica is one of the processes of the operator that share its objects.
type Replica struct {
	// Name is what the others call it.
	Name string

	page    string
	process *os.Process
	killed  atomic.Bool
	stop    func() error
}

// operateReplica is what this process is for when it was started by StartReplica. The input ends when the replica is to end, and also when
// the demo has ended, however that came.
func operateReplica(story Story, name string, input io.Reader) (exitCode int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	config := story.Operator
	config.LeaderElection.Identity = name
	return command.Execute(ctx, config, os.Args[1:], os.Stdout, newLog(os.Stderr, story.Told))
}

// StartReplica starts one more replica of the operator. It has a name that none had before, and ends when the story is over.
func (d *Demo) StartReplica() (*Replica, error) {
	r := &Replica{Name: fmt.Sprintf("replica-%d", len(d.replicas)+1)}
	metrics, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	page, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	r.page = "http://" + page
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Name, err)
	}
	args := append(d.program.runArgs(metrics, page), "--sharding", "--leader-election-namespace", d.Namespace,
		"--leader-election-lease-duration", "5s", "--leader-election-renew-deadline", "4s", "--leader-election-retry-period", "500ms")
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Env = append(os.Environ(), replicaVariable+"="+r.Name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Name, err)
	}
	r.process = cmd.Process
	d.replicas = append(d.replicas, r)
	d.Note(fmt.Sprintf("%s, process %d; watch it at %s/", r.Name, r.process.Pid, r.page))
	r.stop = d.Go(r.Name, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = input.Close() })()
		err := cmd.Wait()
		if r.killed.Load() {
			err = nil
		}
		if err == nil {
			// It ends well because it was told to: by Ctrl-C too, of which the story may hear a moment later.
			<-ctx.Done()
		}
		return err
	})
	return r, nil
}

// Kill ends the replica with no time to do anything more, and waits for that.
func (r *Replica) Kill() error {
	r.killed.Store(true)
	if err := r.process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", r.Name, err)
	}
	return r.stop()
}

// Overview is what the page of the replica says of the operator.
func (r *Replica) Overview(ctx context.Context) (overview inspector.Overview, err error) {
	return overview, r.ask(ctx, "overview", nil, &overview)
}

// OwnerOf is the replica that has an object of a framework, as the page of this one says.
func (r *Replica) OwnerOf(ctx context.Context, framework, namespace, name string) (string, error) {
	var object inspector.Object
	err := r.ask(ctx, "object", url.Values{"framework": {framework}, "namespace": {namespace}, "name": {name}}, &object)
	return object.Owner, err
}

func (r *Replica) ask(ctx context.Context, what string, query url.Values, answer any) error {
	address := r.page + inspector.Path + "api/v1/" + what + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", r.Name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", r.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: %s: %s", r.Name, address, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("ask %s: %s: %w", r.Name, address, err)
	}
	return nil
}

// Replicas are those that run, in the order of their start.
func (d *Demo) Replicas() []*Replica {
	return slices.DeleteFunc(slices.Clone(d.replicas), func(r *Replica) bool { return r.killed.Load() })
}
