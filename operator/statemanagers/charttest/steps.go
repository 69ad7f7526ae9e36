package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// outcome is what became of one step.
type outcome struct {
	step string
	// skipped is why it was not tried.
	skipped string
	// differences are what is not as it should be and is not documented, faults what went wrong otherwise, and explained what is documented.
	differences []difference
	faults      []string
	explained   []*deviation
	// remarks are worth to be known.
	remarks []string
}

func (o *outcome) isEqual() bool { return len(o.differences)+len(o.faults) == 0 }

func (o *outcome) fail(format string, args ...any) {
	o.faults = append(o.faults, strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// trial is a subject that is being tried.
type trial struct {
	*world
	subject   *subject
	reference reference
	// oursBefore and theirsBefore are what was on the clusters before.
	oursBefore, theirsBefore map[types.UID]bool
	// present is the version that is there, and made is what its templates make up.
	present *version
	made    madeUp
	// anew tells that the reference could not upgrade and has installed it anew: the records tell of something else then.
	anew bool
}

// try tries a subject, step by step, and cleans up after it.
func (w *world) try(ctx context.Context, s *subject) (outcomes []*outcome, err error) {
	t := &trial{world: w, subject: s}
	if s.old.chart != nil {
		t.reference = &helmReference{cluster: w.theirs, name: s.id, timeout: w.timeout, folder: filepath.Join(w.folder, "helm")}
	} else {
		t.reference = &kustomizeReference{cluster: w.theirs, namespace: s.namespace()}
	}
	if t.oursBefore, err = w.ours.uids(ctx); err != nil {
		return nil, err
	}
	if t.theirsBefore, err = w.theirs.uids(ctx); err != nil {
		return nil, err
	}
	broken := ""
	for _, step := range []struct {
		name string
		do   func(context.Context, *outcome)
	}{
		{"install", func(ctx context.Context, o *outcome) { t.put(ctx, s.old, o) }},
		{"again", t.again},
		{"upgrade", func(ctx context.Context, o *outcome) { t.put(ctx, s.updated, o) }},
		{"drift", t.drift},
		{"removal", t.removal},
	} {
		o := &outcome{step: step.name}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case step.name == "upgrade" && s.updated == nil:
			o.skipped = "there is one version of it only"
		case broken != "" && step.name != "removal":
			o.skipped = broken
		default:
			step.do(ctx, o)
		}
		if t.present == nil && broken == "" {
			broken = "it is not there after: " + step.name
		}
		outcomes = append(outcomes, o)
	}
	if err := errors.Join(w.ours.clean(ctx, t.oursBefore), w.theirs.clean(ctx, t.theirsBefore)); err != nil {
		fmt.Fprintf(w.progress, "%s: clean up after it: %v\n", s.name, err)
	}
	return outcomes, ctx.Err()
}

// put has a version put there by the reference and by the state manager, and compares.
func (t *trial) put(ctx context.Context, v *version, o *outcome) {
	t.present = nil
	made, err := t.reference.madeUp(ctx, v)
	if err != nil {
		o.fail("render it twice: %v", err)
		return
	}
	if t.made = made; len(made) > 0 {
		o.remarks = append(o.remarks, "its templates make up, and so these are not compared: "+made.String())
	}
	refused := t.reference.put(ctx, v)
	err = t.world.put(ctx, t.subject, v, refused != nil)
	switch {
	case refused != nil && err != nil:
		o.remarks = append(o.remarks, fmt.Sprintf("it can't be put there by either of them: %s", cutLine(refused)))
		return
	case refused != nil:
		if !t.installAnew(ctx, v, refused, o) {
			return
		}
	case err != nil:
		o.fail("it is not deployed: %v", err)
		return
	}
	t.present = v
	t.compare(ctx, o, t.settle+compareTimeout)
}

// installAnew has the reference install what it could not upgrade to, if the documentation says that the state manager can, so that the
// objects can be compared all the same.
func (t *trial) installAnew(ctx context.Context, v *version, refused error, o *outcome) bool {
	i := slices.IndexFunc(deviations, func(d *deviation) bool { return d.allows != nil && d.allows(t, refused) })
	if i < 0 {
		o.fail("it is deployed, and should be refused: %v", refused)
		return false
	}
	o.explained = append(o.explained, deviations[i])
	o.remarks = append(o.remarks, fmt.Sprintf("the objects are compared with those of an installation, because Helm can't upgrade: %s", cutLine(refused)))
	t.anew = true
	err := t.reference.remove(ctx)
	if err == nil {
		err = t.reference.put(ctx, v)
	}
	if err != nil {
		o.fail("install it anew, to compare with that: %v", err)
	}
	return err == nil
}

// compareTimeout is for how long what differs may become equal by itself: a Job vanishes, a controller writes.
const compareTimeout = 10 * time.Second

// compare compares what is on both clusters, until nothing differs or the time is over.
func (t *trial) compare(ctx context.Context, o *outcome, timeout time.Duration) {
	var found []difference
	var explained []*deviation
	var failed error
	_ = eventually(ctx, timeout, func() error {
		found, failed = t.differences(ctx)
		if failed != nil {
			return failed
		}
		if found, explained = t.explain(found, o.step); len(found) > 0 {
			return errors.New("there are differences")
		}
		return nil
	})
	if failed != nil {
		o.fail("compare: %v", failed)
		return
	}
	o.differences = append(o.differences, found...)
	for _, d := range explained {
		if !slices.Contains(o.explained, d) {
			o.explained = append(o.explained, d)
		}
	}
}

// differences looks at both clusters once.
func (t *trial) differences(ctx context.Context) ([]difference, error) {
	ours, err := t.ours.objects(ctx, t.oursBefore)
	if err != nil {
		return nil, err
	}
	theirs, err := t.theirs.objects(ctx, t.theirsBefore)
	if err != nil {
		return nil, err
	}
	found := compareObjects(ours, theirs, t.made)
	if t.subject.old.chart == nil || t.anew {
		return found, nil
	}
	mine, err := t.ours.records(t.subject.id, t.subject.id)
	if err != nil {
		return nil, err
	}
	others, err := t.theirs.records(t.subject.id, t.subject.id)
	if err != nil {
		return nil, err
	}
	more, err := compareRecords(mine, others, t.made)
	return append(found, more...), err
}

// again has the state manager look at everything anew: it must not do anything.
func (t *trial) again(ctx context.Context, o *outcome) {
	done, err := t.quiet(ctx, t.subject)
	if err != nil {
		o.fail("%v", err)
		return
	}
	for _, write := range done {
		o.fail("it writes: %s", write)
	}
}

// drift changes and deletes objects by hand, which the state manager has to put right.
func (t *trial) drift(ctx context.Context, o *outcome) {
	desired, err := t.reference.desired(ctx)
	if err != nil {
		o.fail("%v", err)
		return
	}
	for _, interfere := range []struct {
		what string
		do   func(context.Context, string, []*unstructured.Unstructured) ([]string, error)
	}{{"fields changed", t.ours.edit}, {"objects deleted", t.ours.destroy}} {
		done, err := interfere.do(ctx, t.subject.namespace(), desired)
		if err != nil {
			o.fail("%v", err)
			return
		}
		o.remarks = append(o.remarks, fmt.Sprintf("%s by hand: %d", interfere.what, len(done)))
		if t.compare(ctx, o, t.timeout); !o.isEqual() {
			o.remarks = append(o.remarks, interfere.what+" by hand: "+strings.Join(done, ", "))
			return
		}
	}
}

// removal takes the subject away on both sides: what is left has to be the same.
func (t *trial) removal(ctx context.Context, o *outcome) {
	refused := t.reference.remove(ctx)
	err := t.remove(ctx, t.subject)
	switch {
	case err != nil && refused == nil:
		o.fail("it does not go: %v", err)
	case err == nil && refused != nil:
		o.remarks = append(o.remarks, fmt.Sprintf("it goes, and the other does not take it away: %s", cutLine(refused)))
	}
	t.compare(ctx, o, t.settle+compareTimeout)
}

// tell writes what an outcome has to say beyond its place in the table.
func (o *outcome) tell(w io.Writer, name string) {
	for _, fault := range o.faults {
		fmt.Fprintf(w, "%s, %s: %s\n", name, o.step, fault)
	}
	for _, d := range o.differences {
		fmt.Fprintf(w, "%s, %s: %s\n", name, o.step, d)
	}
	for _, remark := range o.remarks {
		fmt.Fprintf(w, "%s, %s: (%s)\n", name, o.step, remark)
	}
}
